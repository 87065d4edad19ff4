export interface Platform {
  readonly name: string
  readonly target: string
  readonly os: string
  readonly cpu: string
  readonly libc?: string
  readonly glibc?: string
}
export const PACKAGE: string
export const PLATFORMS: readonly Platform[]
export function platformNamed(name: string): Platform
export function addonOf(platform: Platform): string

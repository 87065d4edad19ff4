export function filesOfPackages(): Readonly<Record<string, string>>

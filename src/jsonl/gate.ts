/** Promise that resolves when its gate is opened. Lives on the JS thread; logs use it. */

export class Gate {
  readonly opened: Promise<void>
  open: () => void = () => undefined

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve))
  }
}

/** Gives memory of results back, on the JS thread. The HTTP client calls it. */

/** Gives the memory of a result back, so that a later result uses it. Nobody may use the view afterwards. */
export function giveBack(_bytes: Uint8Array): void {
  // The result pool takes it once there is one.
}

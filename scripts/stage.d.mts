export function withAbsoluteLinks(
  text: string,
  manifest: { readonly homepage: string; readonly version: string },
): string

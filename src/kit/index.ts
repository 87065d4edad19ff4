// Nothing of the kit is built yet; the entry is there so that it can be imported.
// oxlint-disable-next-line unicorn/require-module-specifiers
export {}

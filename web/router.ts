import { signal } from "@preact/signals";

/** The parts of the address behind `#/`. */
export const route = signal<readonly string[]>(read());

function read(): readonly string[] {
  const parts = location.hash.replace(/^#\/?/, "").split("/");
  try {
    return parts.filter((part) => part !== "").map(decodeURIComponent);
  } catch {
    return [];
  }
}

/** Reads the address again, where it changed without an event. */
export function reread(): void {
  route.value = read();
}

/** Follows the address; a new view begins at its top, with the focus on its heading. */
export function startRouter(): void {
  window.addEventListener("hashchange", () => {
    const before = route.value;
    route.value = read();
    if (before[0] === route.value[0] && before[1] === route.value[1]) return;
    window.scrollTo(0, 0);
    queueMicrotask(() => document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true }));
  });
}

/** An address on this page. */
export function href(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

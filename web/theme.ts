import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "kubelet-page-theme";
const THEMES: readonly Theme[] = ["auto", "light", "dark"];

export const theme = signal<Theme>(read());
/** Changes when the colours do. */
export const palette = signal(0);

function read(): Theme {
  try {
    return THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto";
  }
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto";
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // The choice lasts as long as the page.
  }
}

export function startTheme(): void {
  theme.subscribe((value) => {
    if (value === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = value;
    palette.value++;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    palette.value++;
  });
}

/** A colour of the style sheet, as canvases need it. */
export function color(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

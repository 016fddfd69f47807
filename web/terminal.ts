import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { allowComputedStyles } from "./computed-styles.ts";
import { color } from "./theme.ts";
import type { TerminalConnection } from "./views/shell.tsx";

/** Shows a terminal in an element, connected. Returns how to end it. */
export function openTerminal(element: HTMLElement, connection: TerminalConnection): () => void {
  allowComputedStyles();
  const terminal = new Terminal({
    cursorBlink: true,
    fontSize: 13,
    scrollback: 5000,
    screenReaderMode: true,
    // What a program in a container prints must not lead anywhere.
    linkHandler: { activate: () => undefined },
    theme: { background: color("terminal"), foreground: color("terminal-text"), cursor: color("terminal-text") },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  fit.fit();
  terminal.onData((text) => connection.input(text));
  terminal.onResize(({ cols, rows }) => connection.resize(cols, rows));
  connection.open({
    opened: () => {
      connection.resize(terminal.cols, terminal.rows);
      terminal.focus();
    },
    output: (bytes) => terminal.write(bytes),
    closed: () => terminal.write("\r\n[closed]\r\n"),
  });
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(element);
  return () => {
    observer.disconnect();
    connection.close();
    terminal.dispose();
  };
}

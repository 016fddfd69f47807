import { signal } from "@preact/signals";
import type { PageRefusal } from "../src/model/page-lines.ts";
import { reread } from "./router.ts";

const KEY = "kubelet-page-key";

/** How the user signs in, while nobody is signed in; undefined otherwise. */
export const signIn = signal<{ readonly how: "link" | "token"; readonly message: string } | undefined>(undefined);

/** The secret of the Authorization header: of a session, or a bearer token of the cluster. */
let key = read();

function read(): string {
  try {
    return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Tokens of a cluster are kept for this tab only, keys of a session for all tabs. */
export function keep(secret: string, { forTab }: { readonly forTab: boolean }): void {
  key = secret;
  signIn.value = undefined;
  try {
    (forTab ? sessionStorage : localStorage).setItem(KEY, secret);
  } catch {
    // Storage is turned off: the key lives as long as the page.
  }
}

/** Signs out, here and at the agent. */
export async function signOut(): Promise<void> {
  await fetch("/page/api/logout", { method: "POST", headers: headers() }).catch(() => undefined);
  try {
    sessionStorage.removeItem(KEY);
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
  key = "";
  location.reload();
}

function headers(): Record<string, string> {
  return key === "" ? {} : { Authorization: `Bearer ${key}` };
}

/** Uses the token of a login link, also of one that is opened in the tab of the page. */
export async function startSession(): Promise<void> {
  window.addEventListener("hashchange", () => void useLoginLink());
  await useLoginLink();
}

/** Exchanges the token in the address, if there is one, and removes it from there. */
async function useLoginLink(): Promise<void> {
  const token = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (token === undefined) return;
  history.replaceState(undefined, "", "/");
  reread();
  const response = await fetch("/page/api/login", { method: "POST", body: token });
  if (response.ok) keep(((await response.json()) as { key: string }).key, { forTab: false });
  else signIn.value = { how: "link", message: await messageOf(response) };
}

/** An error answer of the agent. */
export class RefusedError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Asks the agent for data. Rejects with `RefusedError`, and shows the sign-in if that is what is missing. */
export async function ask(path: string, options: { readonly signal?: AbortSignal } = {}): Promise<Response> {
  const response = await fetch(`/page/api/${path}`, { headers: headers(), cache: "no-store", ...options });
  if (response.ok) return response;
  const { message, signIn: how } = (await response.json().catch(() => ({}))) as Partial<PageRefusal>;
  const text = message ?? `the agent answered ${response.status}`;
  if (response.status === 401) signIn.value = { how: how ?? "link", message: signIn.value?.message ?? text };
  throw new RefusedError(response.status, text);
}

export async function askJson<T>(path: string): Promise<T> {
  return (await (await ask(path)).json()) as T;
}

/** Opens a WebSocket; browsers cannot add headers to one, so the key is a subprotocol, as in Kubernetes. */
export function openSocket(path: string, protocol: string): WebSocket {
  const encoded = btoa(key).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const credential = encoded === "" ? [] : [`base64url.bearer.authorization.k8s.io.${encoded}`];
  return new WebSocket(`${scheme}://${location.host}/page/api/${path}`, [protocol, ...credential]);
}

async function messageOf(response: Response): Promise<string> {
  const { message } = (await response.json().catch(() => ({}))) as Partial<PageRefusal>;
  return message ?? `the agent answered ${response.status}`;
}

type Koffi = typeof import("koffi").default;
type NativeLibrary = ReturnType<Koffi["load"]>;

/** The C library behind koffi, with what is needed to call it and to read its errors. */
export interface Native {
  readonly koffi: Koffi;
  readonly libc: NativeLibrary;
}

let loading: Promise<Native | undefined> | undefined;

/**
 * Loads koffi and the C library at first use (15 ms), or resolves to undefined where they cannot be had: a foreign
 * processor, a missing optional package, `KUBELET_NO_NATIVE=1` for tests of the fallbacks. Callers must have one.
 */
export function loadNative(): Promise<Native | undefined> {
  if (process.env.KUBELET_NO_NATIVE === "1") return Promise.resolve(undefined);
  loading ??= load();
  return loading;
}

async function load(): Promise<Native | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const module = await import("koffi");
    const koffi = module.default;
    for (const name of ["libc.so.6", "libc.so", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
      try {
        return { koffi, libc: koffi.load(name) };
      } catch {
        // The next name: glibc, then what musl systems call it.
      }
    }
  } catch {
    // No binary for this processor or package left out: the fallbacks serve.
  }
  return undefined;
}

/** A failed system call as Node writes them: `code`, `errno`, `syscall` and `path`. */
export function systemError({ koffi }: Native, call: { syscall: string; path?: string; errno: number }): Error {
  const code = Object.entries(koffi.os.errno).find(([, value]) => value === call.errno)?.[0] ?? `E${call.errno}`;
  const where = call.path === undefined ? "" : ` '${call.path}'`;
  const error = new Error(`${code}: ${call.syscall}${where}`);
  return Object.assign(error, { code, errno: -call.errno, syscall: call.syscall, path: call.path });
}

/** A C function of koffi: called in the thread pool, so that the event loop is not blocked. */
export interface NativeFunction {
  async(...args: unknown[]): unknown;
}

/** Calls a C function that answers -1 and sets errno when it fails; rejects with a system error then. */
export function callNative(
  native: Native,
  fn: NativeFunction,
  call: { readonly args: readonly unknown[]; readonly syscall: string; readonly path?: string },
): Promise<number> {
  const { args, syscall, path } = call;
  return new Promise((resolve, reject) => {
    fn.async(...args, (failure: unknown, result: number | bigint) => {
      // Only here, before any other call of this thread, is the number the one of this call.
      const errno = native.koffi.errno();
      if (failure) return reject(failure as Error);
      if (Number(result) !== -1) return resolve(Number(result));
      reject(systemError(native, { syscall, errno, ...(path === undefined ? {} : { path }) }));
    });
  });
}

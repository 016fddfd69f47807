/**
 * The form of a sysctl's name with dots. The first separator tells which form was written; in the other one a dot and
 * a slash change places (`net/ipv4/conf/eth0.1/forwarding` is `net.ipv4.conf.eth0/1.forwarding`).
 */
export function sysctlName(written: string): string {
  if (/[./]/.exec(written)?.[0] !== "/") return written;
  return written.replace(/[./]/g, (separator) => (separator === "/" ? "." : "/"));
}

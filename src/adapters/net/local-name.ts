/**
 * True if the Host header names this machine itself. A name that a foreign DNS server resolves to this machine does not:
 * a web site would reach a port on loopback by it. The port may be one of a tunnel.
 */
export function isLocalName(host: string): boolean {
  return /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?$/i.test(host);
}

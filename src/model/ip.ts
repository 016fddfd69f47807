const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** True for an IPv4 or IPv6 address in its text form, without a zone or a port. */
export function isIpAddress(text: string): boolean {
  if (IPV4.test(text)) return true;
  return text.includes(":") && /^[0-9a-fA-F:.]{2,45}$/.test(text) && URL.canParse(`http://[${text}]/`);
}

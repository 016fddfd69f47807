import type { Container, IntOrString } from "./generated/types.ts";

/** The number of a port that is given as a number or as the name of one of the container's ports. Throws if it is neither. */
export function resolvePort(port: IntOrString, container: Pick<Container, "ports">): number {
  const named = (container.ports ?? []).find(({ name }) => name !== undefined && name !== "" && name === port);
  const number = named?.containerPort ?? Number(port);
  if (typeof port === "string" && !Number.isInteger(number)) throw new Error(`couldn't find port: ${port}`);
  if (number > 0 && number < 65536) return number;
  throw new Error(`invalid port number: ${number}`);
}

import { isDeepStrictEqual } from "node:util";
import { ENDPOINT_SLICES, ENDPOINTS } from "../../../adapters/kubeapi/index.ts";
import type { EndpointSlice, Endpoints } from "../../../model/generated/types.ts";
import { isIpAddress } from "../../../model/ip.ts";
import { type FieldError, IMMUTABLE, invalid, notSupported, required } from "../../status/field-error.ts";
import { AGE, firstFew, NAME, tableOf } from "../../tables/columns.ts";
import { portProblems } from "../../validation/formats.ts";
import { defineKind } from "../kind.ts";

export const endpointsKind = defineKind<Endpoints>({
  resource: ENDPOINTS,
  singular: "endpoints",
  shortNames: ["ep"],
  deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
  createsOnUpdate: true,
  defaults: (endpoints) => ({
    ...endpoints,
    ...(endpoints.subsets && {
      subsets: endpoints.subsets.map((subset) => ({
        ...subset,
        ...(subset.ports && { ports: subset.ports.map((port) => ({ ...port, protocol: port.protocol || "TCP" })) }),
      })),
    }),
  }),
  table: tableOf<Endpoints>([NAME, { name: "Endpoints", cell: addressesText }, AGE]),
});

function addressesText({ subsets = [] }: Endpoints): string {
  if (subsets.length === 0) return "<none>";
  const list = subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip }) => `${ip.includes(":") ? `[${ip}]` : ip}:${port}`)),
  );
  return firstFew(list, "");
}

/** A change of labels moves a slice to another service. */
function countedParts({ metadata, addressType, endpoints, ports }: EndpointSlice): unknown {
  return { labels: metadata.labels ?? {}, addressType, endpoints: endpoints ?? [], ports: ports ?? [] };
}

const ADDRESS_TYPES = ["FQDN", "IPv4", "IPv6"];

export const endpointSliceKind = defineKind<EndpointSlice>({
  resource: ENDPOINT_SLICES,
  hasGeneration: true,
  countsChange: (next, old) => !isDeepStrictEqual(countedParts(next), countedParts(old)),
  defaults: (slice) => ({
    ...slice,
    ...(slice.ports && {
      ports: slice.ports.map((port) => ({ ...port, name: port.name ?? "", protocol: port.protocol ?? "TCP" })),
    }),
  }),
  validate: ({ addressType, endpoints = [], ports = [] }) => [
    ...addressTypeErrors(addressType),
    ...endpoints.flatMap(({ addresses }, index) => addressErrors(addresses, addressType, `endpoints[${index}]`)),
    ...ports.flatMap(({ port }, index) =>
      port === undefined ? [] : portProblems(port).map((message) => invalid(`ports[${index}].port`, port, message)),
    ),
  ],
  validateUpdate: (next, old) =>
    next.addressType === old.addressType ? [] : [invalid("addressType", next.addressType, IMMUTABLE)],
  table: tableOf<EndpointSlice>([
    NAME,
    { name: "AddressType", cell: ({ addressType }) => addressType },
    {
      name: "Ports",
      cell: ({ ports = [] }) =>
        firstFew(
          ports.map(({ port, name }) => String(port ?? name ?? "*")),
          "<unset>",
        ),
    },
    {
      name: "Endpoints",
      cell: ({ endpoints = [] }) =>
        firstFew(
          endpoints.flatMap(({ addresses }) => addresses),
          "<unset>",
        ),
    },
    AGE,
  ]),
});

function addressErrors(addresses: readonly string[], addressType: string, path: string): FieldError[] {
  if (addresses.length === 0) return [required(`${path}.addresses`, "must contain at least 1 address")];
  if (addressType === "FQDN") return [];
  return addresses.flatMap((address, index) =>
    isIpAddress(address) && address.includes(":") === (addressType === "IPv6")
      ? []
      : [invalid(`${path}.addresses[${index}]`, address, `must be an ${addressType} address`)],
  );
}

function addressTypeErrors(addressType: string): FieldError[] {
  if (addressType === "") return [required("addressType")];
  return ADDRESS_TYPES.includes(addressType) ? [] : [notSupported("addressType", addressType, ADDRESS_TYPES)];
}

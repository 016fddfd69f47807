// What the images of examples/apps are made of.

/** Debian's packages that are asked for; those that they depend on come with them. */
export const PACKAGES = [
  ...["busybox-static", "libc6"],
  "nginx",
  ...["python3.11-minimal", "libpython3.11-stdlib", "python3-psycopg2"],
  ...["postgresql-15", "postgresql-client-15"],
  ...["redis-server", "redis-tools"],
  "rsyslog",
];

/** Dependencies of installation scripts, of administration and of parts that no image has. */
export const UNUSED = [
  /^(adduser|cdebconf|debconf|dpkg|install-info|passwd|perl|ucf|tar|openssl|ssl-cert|iproute2|tzdata)/,
  /^(init-system-helpers|sensible-utils|sysvinit-utils|lsb-base|usrmerge|usr-is-merged|libc-l10n|locales)/,
  /^(postgresql-common|postgresql-client-common|libllvm|libperl|libz3|libelogind|libdebian-installer|libc-bin)/,
  /-perl$|^python3$|^python3-minimal$|^python3\.11$|^libpython3-stdlib$|^mime-support$|^mailcap$/,
];

const POSTGRES = "usr/lib/postgresql/15/bin";

/**
 * An image: its programs, with the libraries that they are linked with, and trees of other files with the libraries of
 * what can be loaded from there. All have busybox as their shell, and the users of Debian's packages.
 */
export const IMAGES = [
  { name: "nginx", programs: ["usr/sbin/nginx"], trees: ["etc/nginx/mime.types"] },
  {
    name: "python",
    programs: ["usr/bin/python3.11"],
    trees: ["usr/lib/python3.11", "usr/lib/python3/dist-packages/psycopg2"],
    links: { "usr/bin/python3": "python3.11" },
  },
  {
    name: "postgres",
    programs: ["postgres", "initdb", "pg_ctl", "pg_isready", "psql"].map((name) => `${POSTGRES}/${name}`),
    trees: [
      "usr/share/postgresql/15",
      "usr/lib/postgresql/15/lib/plpgsql.so",
      "usr/lib/postgresql/15/lib/dict_snowball.so",
    ],
  },
  { name: "redis", programs: ["usr/bin/redis-server", "usr/bin/redis-cli"], trees: [] },
  {
    name: "rsyslog",
    programs: ["usr/sbin/rsyslogd"],
    trees: ["im*", "om*", "lm*"].map((name) => `usr/lib/TRIPLET/rsyslog/${name}.so`),
  },
];

/** Not needed at run time, or of no use without the rest of a system. */
export const LEFT_OUT =
  /\/(test|tests|idlelib|lib2to3|ensurepip|distutils|__pycache__|man|doc|locale)(\/|$)|\/omelastic/;

const users = [
  ["root", 0],
  ["www-data", 33],
  ["postgres", 101],
  ["redis", 102],
  ["nobody", 65534],
];

/** Files that no package has. */
export const ETC = {
  passwd: users.map(([name, id]) => `${name}:x:${id}:${id}::/:/bin/sh\n`).join(""),
  group: users.map(([name, id]) => `${name}:x:${id}:\n`).join(""),
};

/**
 * The two files that tell which project counts what: /etc/projects (`id:path`) and /etc/projid (`name:id`). All here is
 * pure, and leaves every line that is not the agent's own as it is, comments and nonsense included.
 */

/** Where the ids of volumes begin, as in Kubernetes: those below are for administrators. */
export const FIRST_PROJECT = 1_048_577;
/** The kernel's ids have 32 bits, and the last one means none. */
const LAST_PROJECT = 0xffff_fffe;

/** The content of both files. */
export interface ProjectFiles {
  readonly projects: string;
  readonly projid: string;
}

interface Project {
  readonly id: number;
  readonly path: string;
}

/** The project that counts a directory, if one of the volumes' ids does. */
export function projectOfPath({ projects }: Pick<ProjectFiles, "projects">, path: string): number | undefined {
  return volumeProjects(projects).find((project) => project.path === path)?.id;
}

/** Every directory that has an id of the volumes. */
export function volumeProjects(projects: string): readonly Project[] {
  return lines(projects).flatMap((line) => projectIn(line) ?? []);
}

/** Every id that one of the files names, whoever it belongs to. */
export function takenIds({ projects, projid }: ProjectFiles): ReadonlySet<number> {
  const first = lines(projects).map((line) => idIn(line.split(":")[0]));
  const second = lines(projid).map((line) => idIn(line.split(":")[1]));
  return new Set([...first, ...second].filter((id) => id !== undefined));
}

/** With the directory and a name for its id; what is there already is not written twice. */
export function withProject(files: ProjectFiles, { id, path }: Project): ProjectFiles {
  const own = `${id}:${path}`;
  const name = nameLine(id);
  return {
    projects: lines(files.projects).includes(own) ? files.projects : appended(files.projects, own),
    projid: lines(files.projid).includes(name) ? files.projid : appended(files.projid, name),
  };
}

/** Without these directories, and without the names of their ids unless another directory has the id, too. */
export function withoutProjects(files: ProjectFiles, paths: ReadonlySet<string>): ProjectFiles {
  const all = volumeProjects(files.projects);
  const kept = new Set(all.filter(({ path }) => !paths.has(path)).map(({ id }) => id));
  const names = new Set(all.filter(({ id, path }) => paths.has(path) && !kept.has(id)).map(({ id }) => nameLine(id)));
  return {
    projects: filtered(files.projects, (line) => !paths.has(projectIn(line)?.path ?? "")),
    projid: filtered(files.projid, (line) => !names.has(line)),
  };
}

/** `volume1048577:1048577`, the name that Kubernetes gives. */
function nameLine(id: number): string {
  return `volume${id}:${id}`;
}

function projectIn(line: string): Project | undefined {
  const colon = line.indexOf(":");
  const id = colon === -1 ? undefined : idIn(line.slice(0, colon));
  return id === undefined || id < FIRST_PROJECT ? undefined : { id, path: line.slice(colon + 1) };
}

function idIn(text: string | undefined): number | undefined {
  if (text === undefined || !/^\s*\d{1,10}\s*$/.test(text)) return undefined;
  const id = Number(text);
  return id <= LAST_PROJECT ? id : undefined;
}

function lines(text: string): readonly string[] {
  return text.split("\n");
}

function filtered(text: string, keep: (line: string) => boolean): string {
  return lines(text).filter(keep).join("\n");
}

/** A file whose last line has no end gets one first. */
function appended(text: string, line: string): string {
  return `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`;
}

/** Bodies over this size are not searched: nobody writes that many fields by hand. */
const LARGEST_SEARCHED = 1 << 20;
/** Paths that are returned: no answer names more. */
const MOST_FOUND = 100;
/** Characters of a path that are shown: the name of a parent, which each path repeats, may be as long as the body. */
const LONGEST_PATH = 200;

/** Returns a path as messages show it: cut if it is long. */
export function shownPath(path: string): string {
  return path.length <= LONGEST_PATH ? path : `${path.slice(0, LONGEST_PATH)}…`;
}

/**
 * The paths of the first 100 keys that occur twice in one object of a JSON text, which parses; long ones are cut.
 * `JSON.parse` takes the last of them silently; Kubernetes warns, or refuses.
 */
export function duplicateKeys(text: string): readonly string[] {
  if (text.length > LARGEST_SEARCHED) return [];
  const found: string[] = [];
  const scanner = new Scanner(text, found);
  scanner.value("");
  return found;
}

class Scanner {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly found: string[],
  ) {}

  value(path: string): void {
    this.blanks();
    const first = this.text[this.at];
    if (first === "{") this.object(path);
    else if (first === "[") this.array(path);
    else if (first === '"') this.string();
    else while (this.at < this.text.length && !",]} \n\r\t".includes(this.text[this.at] ?? "")) this.at++;
  }

  private object(path: string): void {
    const keys = new Set<string>();
    this.at++;
    for (;;) {
      this.blanks();
      if (this.take("}")) return;
      if (this.take(",")) continue;
      const key = this.string();
      const inner = shownPath(path === "" ? key : `${path}.${key}`);
      if (keys.has(key) && this.found.length < MOST_FOUND) this.found.push(inner);
      keys.add(key);
      this.blanks();
      this.take(":");
      this.value(inner);
    }
  }

  private array(path: string): void {
    this.at++;
    for (let index = 0; ; ) {
      this.blanks();
      if (this.take("]")) return;
      if (this.take(",")) index++;
      else this.value(shownPath(`${path}[${index}]`));
    }
  }

  private string(): string {
    const begin = this.at++;
    while (this.at < this.text.length && this.text[this.at] !== '"') this.at += this.text[this.at] === "\\" ? 2 : 1;
    this.at++;
    // A string of a text that parses.
    return JSON.parse(this.text.slice(begin, this.at)) as string;
  }

  private take(word: string): boolean {
    if (this.text[this.at] !== word) return false;
    this.at++;
    return true;
  }

  private blanks(): void {
    while (" \n\r\t".includes(this.text[this.at] ?? "x")) this.at++;
  }
}

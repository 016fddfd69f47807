import { isAlias, isCollection, isMap, isScalar, type YAMLMap, type YAMLSeq } from "yaml";

/** What documents may have, with every alias replaced by what it stands for. */
export interface SizeLimit {
  /** Fields and elements, counted as in `countValues`. */
  readonly values: number;
  /** Characters of all texts and keys. */
  readonly characters: number;
}

/** So many values may come from aliases alone. */
const FEW_VALUES = 1_000;
/** How many times as many values as are written a larger document may have, as in Go's parser. */
const MOST_TIMES = 100;

interface Size {
  values: number;
  characters: number;
}

/** A map or list that is being measured. */
interface Frame {
  readonly node: YAMLMap | YAMLSeq;
  readonly size: Size;
  /** Of a list, the next item; of a map, twice the next pair, and one more for its value. */
  next: number;
}

/**
 * Measures documents of the YAML parser before they become values: the library shares what aliases name, but merge keys,
 * and everybody who walks or writes the value, expand it. Not recursive; takes as long as the text, not as what it expands to.
 */
export class ExpandedSize {
  private readonly total: Size = { values: 0, characters: 0 };
  /** Fields and elements without those that aliases add. */
  private written = 0;
  private aliases = 0;

  constructor(private readonly limit: SizeLimit) {}

  /** Adds a document. Returns what is wrong if all of them together exceed the limit. */
  add(root: unknown): "TooLarge" | "TooManyAliases" | undefined {
    const frames: Frame[] = [];
    const anchors = new Map<string, Size>();
    // Opens a collection, or adds a scalar or alias to the collection that has it.
    const visit = (node: unknown, into: Size, isKey: boolean): void => {
      if (isCollection(node)) {
        const size = { values: node.items.length === 0 ? 2 : 1, characters: 0 };
        this.written += size.values;
        // An alias inside of it adds the part so far: a value that contains itself is found by its depth.
        if (node.anchor !== undefined) anchors.set(node.anchor, size);
        frames.push({ node: node as YAMLMap | YAMLSeq, size, next: 0 }); // reason: there is no other collection
      } else if (isAlias(node)) {
        this.aliases++;
        addTo(into, anchors.get(node.source) ?? { values: 1, characters: 0 });
      } else {
        const text = isScalar(node) ? node.value : undefined;
        const size = { values: 1, characters: typeof text === "string" ? text.length : 0 };
        if (isScalar(node) && node.anchor !== undefined) anchors.set(node.anchor, size);
        if (!isKey) this.written++;
        addTo(into, isKey ? { ...size, values: 0 } : size);
      }
    };
    visit(root, this.total, false);
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      const { node, size } = frame;
      if (frame.next < (isMap(node) ? 2 : 1) * node.items.length) visit(partAt(frame), size, isKeyNext(frame));
      else {
        frames.pop();
        addTo(frames.at(-1)?.size ?? this.total, size);
      }
      frame.next++;
      if (this.exceeds(size)) return this.reason();
    }
    if (this.exceeds(this.total)) return this.reason();
    const most = Math.max(FEW_VALUES, (this.written + this.aliases) * MOST_TIMES);
    return this.total.values > most ? "TooManyAliases" : undefined;
  }

  private exceeds({ values, characters }: Size): boolean {
    return values > this.limit.values || characters > this.limit.characters;
  }

  private reason(): "TooLarge" | "TooManyAliases" {
    return this.written > this.limit.values ? "TooLarge" : "TooManyAliases";
  }
}

function isKeyNext({ node, next }: Frame): boolean {
  return isMap(node) && next % 2 === 0;
}

function partAt({ node, next }: Frame): unknown {
  if (!isMap(node)) return node.items[next];
  const pair = node.items[next >> 1];
  return next % 2 === 0 ? pair?.key : pair?.value;
}

function addTo(sum: Size, { values, characters }: Size): void {
  sum.values += values;
  sum.characters += characters;
}

/** The lines of a response as they come, each no longer than `longest`: a line may never end. */
export async function* linesOf(response: Response, longest = Number.POSITIVE_INFINITY): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  /** The line that has not ended, in pieces: joined at each piece, a long one would be copied over and over. */
  let pieces: string[] = [];
  let length = 0;
  const keep = (piece: string): void => {
    if (piece === "" || length >= longest) return;
    pieces.push(length + piece.length > longest ? piece.slice(0, longest - length) : piece);
    length += piece.length;
  };
  const line = (): string => {
    const text = pieces.join("");
    [pieces, length] = [[], 0];
    return text;
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    let from = 0;
    for (let end = value.indexOf("\n"); end >= 0; end = value.indexOf("\n", from)) {
      keep(value.slice(from, end));
      yield line();
      from = end + 1;
    }
    keep(value.slice(from));
  }
  if (length > 0) yield line();
}

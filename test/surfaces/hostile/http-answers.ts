/** An answer as read from a connection. */
export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/**
 * Reads what a server wrote on a connection as complete HTTP/1.1 answers, strictly. Throws if anything else was
 * written. Not for answers to HEAD.
 */
export function answersOf(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; rest !== '';) {
    const head = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[!#$%&'*+.^_`|~\w-]+: [^\r\n]*\r\n)*)\r\n/.exec(rest);
    if (!head) throw new Error(`not an answer: ${JSON.stringify(rest.slice(0, 200))}`);
    rest = rest.slice(head[0].length);
    const status = Number(head[1]);
    if (status < 200) continue;
    const headers: Record<string, string> = {};
    for (const line of head[2]!.split('\r\n').slice(0, -1)) {
      const [name, value] = [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)];
      if (name in headers) throw new Error(`two headers ${name}`);
      headers[name] = value;
    }
    const [body, after] = bodyOf(headers, rest);
    answers.push({ status, headers, body });
    rest = after;
  }
  return answers;
}

function bodyOf(headers: Record<string, string>, text: string): [body: string, after: string] {
  if (headers['transfer-encoding'] === undefined) {
    const length = Number(headers['content-length'] ?? 0);
    if (text.length < length) throw new Error(`a body of ${text.length} bytes instead of ${length}`);
    return [text.slice(0, length), text.slice(length)];
  }
  let body = '';
  for (let rest = text; ;) {
    const size = /^([0-9a-f]+)\r\n/i.exec(rest);
    if (!size) throw new Error(`not a chunk: ${JSON.stringify(rest.slice(0, 50))}`);
    const bytes = parseInt(size[1]!, 16);
    rest = rest.slice(size[0].length);
    if (rest.slice(bytes, bytes + 2) !== '\r\n') throw new Error('a chunk without its end');
    if (bytes === 0) return [body, rest.slice(2)];
    body += rest.slice(0, bytes);
    rest = rest.slice(bytes + 2);
  }
}

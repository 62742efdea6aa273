import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { type Answer, type Asked, send } from '../ask';

interface Operation {
  responses: Record<
    string,
    {
      content?: Record<
        string,
        { schema: { $ref?: string; properties?: { data: { anyOf: [unknown, { contentSchema: { $ref: string } }] } } } }
      >;
    }
  >;
}

/** A served OpenAPI document, to compare with real answers. */
export class Documented {
  private constructor(
    private readonly baseUrl: string,
    readonly paths: Record<string, Record<string, Operation>>,
    private readonly ajv: Ajv2020,
  ) {}

  /** Reads the document at `path` of a port, without a credential. */
  static async read(baseUrl: string, path: string): Promise<Documented> {
    const response = await fetch(baseUrl + path);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/yaml; charset=utf-8']);
    const document = parse(await response.text());
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats(ajv);
    ajv.addFormat('iso8601', true);
    ajv.addSchema({ ...document, $id: 'doc:tollgate' });
    return new Documented(baseUrl, document.paths, ajv);
  }

  schemaOf(ref: string): ValidateFunction {
    return this.ajv.compile({ $ref: `doc:tollgate${ref}` });
  }

  /**
   * Sends a request and compares the answer with the document. `ids` are the values of the path's parameters.
   */
  async ask(
    method: string,
    path: string,
    asked: Asked,
    { query = '', ...ids }: { query?: string; [name: string]: string } = {},
  ): Promise<Answer> {
    const url = this.baseUrl + path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? '') + query;
    const answer = await send(url, { method: method.toUpperCase(), ...asked });
    const documented = this.paths[path]![method]!.responses[String(answer.status)];
    expect([path, method, answer.status, documented && Object.keys(documented)]).toEqual([
      path,
      method,
      answer.status,
      expect.any(Array),
    ]);
    const schema = documented!.content?.['application/json']?.schema;
    if (!schema) {
      expect(answer.json).toBeNull();
      return answer;
    }
    const validate = this.schemaOf(schema.$ref!);
    validate(answer.json);
    expect([path, answer.json, validate.errors]).toEqual([path, answer.json, null]);
    return answer;
  }
}

import { type Static, Type } from '@sinclair/typebox';
import { only, optional, TEXT } from './schema-builders';
import { CALLED_FUNCTION, MAX_TOOLS, TOOL_CALL } from './tool-schemas';

const MAX_CONTENT_PARTS = 4_096;
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'] as const;
/** The parts whose cost does not depend on their bytes. */
export const MEDIA_TYPES = ['image_url', 'input_audio', 'video_url', 'file'] as const;
export type MediaType = (typeof MEDIA_TYPES)[number];
const PART_TYPES = ['text', ...MEDIA_TYPES, 'refusal'] as const;
const MAX_FILE_NAME_CHARS = 256;

/** Base64, optionally as a `data:` URL. A backend has nothing to fetch. */
const AUDIO_DATA = { type: 'string', pattern: '^(data:audio/[a-z0-9.+-]{1,32};base64,)?[A-Za-z0-9+/]*={0,2}$' };
/** Base64 as a `data:` URL. Some backends would take other text for an address or for the path of a file. */
const FILE_DATA = { type: 'string', pattern: '^data:[a-z]+/[A-Za-z0-9.+-]{1,100};base64,[A-Za-z0-9+/]*={0,2}$' };

const ContentPart = Type.Object(
  {
    type: Type.Unsafe<(typeof PART_TYPES)[number]>({ type: 'string', enum: PART_TYPES }),
    text: Type.Optional(Type.String()),
    cache_control: Type.Optional(Type.Unknown({ description: 'Accepted without effect.' })),
    refusal: Type.Optional(Type.String()),
    image_url: Type.Optional(
      Type.Unsafe<{ url: string; detail?: string | null }>(
        only({ url: TEXT, detail: { type: ['string', 'null'], enum: ['auto', 'low', 'high', null] } }, ['url']),
      ),
    ),
    input_audio: Type.Optional(
      Type.Unsafe<{ data: string; format?: string }>(
        only({ data: AUDIO_DATA, format: { type: 'string', pattern: '^[a-z0-9]{1,16}$' } }, ['data']),
      ),
    ),
    video_url: Type.Optional(Type.Unsafe<{ url: string }>(only({ url: TEXT }, ['url']))),
    file: Type.Optional(
      Type.Unsafe<{ file_data: string; filename?: string }>(
        only({ file_data: FILE_DATA, filename: { type: 'string', maxLength: MAX_FILE_NAME_CHARS } }, ['file_data']),
      ),
    ),
  },
  {
    additionalProperties: false,
    title: 'Content part',
    description:
      'A part has the member that `type` names, and no other. Images, audio, videos and files require a model that ' +
      'accepts them. The hold covers the largest cost that each can have. An image or a video is a `data:` URL, or ' +
      'an `https:` URL if the model may fetch from its domain. A file is a `data:` URL in base64.',
  },
);

/** Members of earlier answers that clients send back. They are accepted and not sent to backends. */
export const NOT_PASSED_ON_IN_MESSAGES = [
  'annotations',
  'audio',
  'id',
  'parsed',
  'provider_specific_fields',
  'reasoning_details',
  'stop_reason',
  'thinking',
  'thinking_blocks',
] as const;
const NOT_PASSED_ON = Object.fromEntries(
  NOT_PASSED_ON_IN_MESSAGES.map((name) => [
    name,
    Type.Optional(Type.Unknown({ description: 'From an earlier answer. Not passed on.' })),
  ]),
);

/** A message of a chat. */
export const Message = Type.Object(
  {
    role: Type.Unsafe<(typeof ROLES)[number]>({ type: 'string', enum: ROLES }),
    content: Type.Optional(
      Type.Unsafe<string | Static<typeof ContentPart>[] | null>({
        type: ['string', 'array', 'null'],
        minItems: 1,
        maxItems: MAX_CONTENT_PARTS,
        items: ContentPart,
        description: 'Text or parts. Only the role `assistant` may omit it or set it to null.',
      }),
    ),
    name: optional<string>('string', {}),
    tool_calls: optional<object[]>('array', {
      maxItems: MAX_TOOLS,
      items: TOOL_CALL,
    }),
    tool_call_id: optional<string>('string', {
      description: 'The call that the message answers. The role `tool` requires it.',
    }),
    refusal: optional<string>('string', {}),
    function_call: optional<object>('object', { ...CALLED_FUNCTION, type: ['object', 'null'] }),
    reasoning_content: optional<string>('string', {
      description: 'From an earlier answer, for templates that show it.',
    }),
    reasoning: optional<string>('string', { description: 'As `reasoning_content`.' }),
    ...NOT_PASSED_ON,
  },
  {
    additionalProperties: false,
    title: 'Message',
    if: { properties: { role: { const: 'assistant' } } },
    // The schema itself refuses other members. Linters of the document would refuse those that are not named here.
    else: {
      required: ['content'],
      properties: { content: { type: ['string', 'array'] } },
      additionalProperties: true,
    },
  },
);

import { Badge, Button, Card, Group, NumberInput, Select, Stack, Text, Textarea, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import type { ModelRow, Tried } from '../../../src/api/answers';
import { api } from '../backend/api';
import { CodeLines } from './code-lines';
import { Failure } from '../parts/failure';
import { count } from '../parts/format';
import { useTenant } from '../backend/me';
import { Command } from '../parts/page';

const MAX_PROMPT_CHARS = 8_000;
const MAX_OUTPUT_TOKENS = 1_000;
const DEFAULT_OUTPUT_TOKENS = 200;
const OK = 200;

/** Tries a model with a key of this session, and shows the request as code. `first`: the model chosen at first. */
export function Playground({ models, first }: { models: readonly ModelRow[]; first: string | undefined }) {
  const { path } = useTenant();
  const [model, setModel] = useState(first ?? '');
  const [prompt, setPrompt] = useState('Say hello in one sentence.');
  const [maxTokens, setMaxTokens] = useState<string | number>(DEFAULT_OUTPUT_TOKENS);
  const run = useMutation({
    mutationFn: () => api.post<Tried>(path('playground'), { model, prompt, maxTokens: Number(maxTokens) }),
  });
  const isChat = models.find(({ id }) => id === model)?.kind !== 'embedding';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    run.mutate();
  };
  return (
    <Card withBorder>
      <Title order={2} size="h4">
        Try a model
      </Title>
      <Text size="sm">
        It costs credit like every request. The key is made for your session, and lives for an hour.
      </Text>
      <form onSubmit={submit}>
        <Stack mt="sm">
          <Group align="flex-end">
            <Select
              label="Model"
              allowDeselect={false}
              data={models.map(({ id }) => id)}
              value={model}
              onChange={(value) => setModel(value ?? '')}
            />
            {isChat ? (
              <NumberInput
                label="Maximum output tokens"
                required
                min={1}
                max={MAX_OUTPUT_TOKENS}
                allowDecimal={false}
                value={maxTokens}
                onChange={setMaxTokens}
              />
            ) : null}
          </Group>
          <Textarea
            label="Prompt"
            required
            autosize
            minRows={3}
            maxRows={10}
            maxLength={MAX_PROMPT_CHARS}
            value={prompt}
            onChange={({ currentTarget }) => setPrompt(currentTarget.value)}
          />
          <Group>
            <Button type="submit" loading={run.isPending}>
              Run
            </Button>
          </Group>
          <Failure error={run.error} />
        </Stack>
      </form>
      {run.data ? <Answer tried={run.data} /> : null}
      <Text mt="md" fw={600}>
        The same request in a program
      </Text>
      {isChat ? (
        <CodeLines
          path="/chat/completions"
          body={{ model, messages: [{ role: 'user', content: prompt }], max_tokens: Number(maxTokens) }}
        />
      ) : (
        <CodeLines path="/embeddings" body={{ model, input: prompt }} />
      )}
    </Card>
  );
}

interface Completion {
  choices?: { message?: { content?: string | null } }[];
  data?: { embedding?: unknown[] }[];
  usage?: { prompt_tokens: number; completion_tokens?: number };
  error?: { code: string; message: string };
}

function Answer({ tried: { status, requestId, seconds, answer } }: { tried: Tried }) {
  const { id } = useTenant();
  const { choices, data, usage, error } = (answer ?? {}) as Completion;
  const dimensions = data?.[0]?.embedding?.length;
  const text =
    error?.message ??
    choices?.[0]?.message?.content ??
    (dimensions === undefined ? 'The answer has no text.' : `A vector of ${count(dimensions)} numbers.`);
  return (
    <Stack gap="xs" mt="md" role="status">
      <Group gap="xs">
        <Badge variant="outline" color={status === OK ? 'green' : 'orange'}>
          {error ? `${status} ${error.code}` : status}
        </Badge>
        <Text size="sm" className="figures">
          {seconds.toFixed(2)} s
          {usage ? `, ${count(usage.prompt_tokens)} + ${count(usage.completion_tokens ?? 0)} tokens` : ''}
        </Text>
        {requestId !== null && status === OK ? (
          <Button
            component={Link}
            size="compact-xs"
            variant="default"
            to="/t/$tenantId/requests"
            params={{ tenantId: id } as never}
            search={{ request: requestId } as never}
          >
            Show its books
          </Button>
        ) : null}
      </Group>
      <Command text={text} label="Answer" />
    </Stack>
  );
}

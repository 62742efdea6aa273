import { Tabs } from '@mantine/core';
import { curlOf, nodeOf, pythonOf, type Call } from './calls';
import { usePerson } from '../backend/me';
import { Command } from '../parts/page';

/** The same request for three clients. */
export function CodeLines(call: Call) {
  const { inferenceUrl } = usePerson();
  return (
    <Tabs defaultValue="curl">
      <Tabs.List>
        <Tabs.Tab value="curl">curl</Tabs.Tab>
        <Tabs.Tab value="node">Node</Tabs.Tab>
        <Tabs.Tab value="python">Python</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="curl">
        <Command text={curlOf(inferenceUrl, call)} />
      </Tabs.Panel>
      <Tabs.Panel value="node">
        <Command text={nodeOf(inferenceUrl, call)} />
      </Tabs.Panel>
      <Tabs.Panel value="python">
        <Command text={pythonOf(inferenceUrl, call)} />
      </Tabs.Panel>
    </Tabs>
  );
}

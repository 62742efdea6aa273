import { Button, Group } from '@mantine/core';

interface MoreProps {
  /** What the next page has: "More keys". */
  label: string;
  of: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> };
}

/** The button below a list whose next page is not loaded. */
export const More = ({ label, of }: MoreProps) =>
  of.hasNextPage ? (
    <Group className="screen">
      <Button variant="default" onClick={() => void of.fetchNextPage()} loading={of.isFetchingNextPage}>
        {label}
      </Button>
    </Group>
  ) : null;

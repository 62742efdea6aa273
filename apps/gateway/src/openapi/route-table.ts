/** A path of a surface, and its methods (HEAD comes with GET). */
export interface Route {
  path: string;
  methods: readonly string[];
}

/** The methods of the route that `path` belongs to; null when there is no such route. */
export function allowedMethods(routes: readonly Route[], path: string): readonly string[] | null {
  const parts = path.split('/');
  const route = routes.find((candidate) => {
    const pattern = candidate.path.split('/');
    return (
      pattern.length === parts.length &&
      pattern.every((part, i) => (part.startsWith('{') ? parts[i] !== '' : part === parts[i]))
    );
  });
  return route?.methods ?? null;
}

import { pageRows, RequestError, toPage, type Page, type PageQuery } from '@tollgate/contracts';
import { LessThan, type FindOptionsWhere, type Repository } from 'typeorm';

/**
 * One page of the rows that match `where`, newest first. Ids ascend with time, so the page after a row holds the rows
 * with smaller ids, however many were added meanwhile. RequestError invalid_parameter: the limit is not valid for a
 * page (`pageRows`), or `after` is not a row of this list.
 */
export async function newestFirst<Row extends { id: string }, Out>(
  rows: Repository<Row>,
  where: FindOptionsWhere<Row>,
  { limit: asked, after }: PageQuery,
  toOut: (row: Row) => Out,
): Promise<Page<Out>> {
  const limit = pageRows(asked);
  if (after !== undefined && !(/^\w+$/.test(after) && (await rows.existsBy({ ...where, id: after })))) {
    throw new RequestError('invalid_parameter', 'after must be the id of a row of this list.');
  }
  const found = await rows.find({
    where: after === undefined ? where : { ...where, id: LessThan(after) },
    order: { id: 'DESC' } as never,
    take: limit + 1,
  });
  const page = toPage(found, limit, ({ id }) => id);
  return { ...page, data: page.data.map(toOut) };
}

const STORED_AS = 'tollgate.asked-page';
/** Every page of the console, and nothing else. */
const OWN = '/console/';

/**
 * The page that a person asked for before the sign-in. It is kept in the tab and not in an address, so that a
 * link from somebody else cannot choose the page after the sign-in.
 */
export const askedPage = {
  keep: (path: string): void => sessionStorage.setItem(STORED_AS, path),
  forget: (): void => sessionStorage.removeItem(STORED_AS),
  get: (): string | null => {
    const path = sessionStorage.getItem(STORED_AS);
    return path?.startsWith(OWN) === true && path !== OWN ? path : null;
  },
};

/** As a page shows it: it collapses white space, and looks the same however its letters are composed. */
const shown = (text: string): string => text.normalize('NFC').replace(/\s+/g, ' ').trim();

/** Whether the person has typed this text as it is shown. */
export const isTyped = (text: string, typed: string): boolean => shown(text) === shown(typed);

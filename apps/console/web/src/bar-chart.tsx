import '@mantine/charts/styles.css';

/** The chart of the kit, as a module of its own for `lazy`. */
export { BarChart as default } from '@mantine/charts';

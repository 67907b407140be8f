/** How metrics are shown: title, unit and scale, those of dumbbell.display. */

import made from "made/metrics.json";

export interface Look {
  title: string;
  unit: string;
  /** What values are multiplied by to be in the unit. */
  scale: number;
  /** The fewest decimals. */
  decimals: number;
}

export interface Column<T> extends Look {
  key: keyof T & string;
}

const looks: Record<string, Look> = made;

/** How a metric is shown; one that tables of Python lack has its name as the title. */
export function lookOf(metric: string): Look {
  const title = metric.charAt(0).toUpperCase() + metric.slice(1).replaceAll("_", " ");
  return looks[metric] ?? { title, unit: "", scale: 1, decimals: 0 };
}

/** The columns of metrics, which are called as in dumbbell.metrics. */
export const columnsOf = <T>(...metrics: (keyof T & string)[]): Column<T>[] => metrics.map((key) => ({ key, ...lookOf(key) }));

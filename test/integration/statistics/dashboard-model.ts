import type { Dashboard, FieldConfig, Panel, RowPanel, VariableModel } from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts';
import type {
  FieldConfig as TimeSeriesField,
  Options as TimeSeriesOptions,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts';

/** A type of Grafana in JSON: an enumeration member is a string, and a member with a default is optional. */
type Written<Type> = Type extends string
  ? `${Type}`
  : Type extends object
    ? { readonly [Key in keyof Type]?: Written<Type[Key]> }
    : Type;

interface Source {
  readonly type: 'prometheus';
  /** The variable with which the user chooses the data source. */
  readonly uid: '${datasource}';
}

interface PrometheusTarget {
  readonly refId: string;
  readonly datasource: Source;
  readonly expr: string;
  readonly legendFormat: string;
}

interface Shown<Type extends string, Options, Custom> {
  readonly type: Type;
  readonly datasource: Source;
  readonly options: Written<Options>;
  readonly fieldConfig: {
    readonly defaults: Omit<Written<FieldConfig>, 'custom'> & { readonly custom?: Written<Custom> };
    readonly overrides: readonly [];
  };
  readonly targets: readonly PrometheusTarget[];
}

type Placed<Of extends { readonly gridPos?: unknown }> = {
  readonly id: number;
  readonly title: string;
  readonly gridPos: Required<Omit<NonNullable<Of['gridPos']>, 'static'>>;
};
type Row = Written<Omit<RowPanel, 'type' | 'id' | 'title' | 'gridPos'>> & Placed<RowPanel> & { readonly type: 'row' };
type Plain = Omit<Written<Panel>, keyof Shown<string, unknown, unknown> | 'id' | 'title' | 'gridPos'> & Placed<Panel>;
type TimeSeries = Plain & Shown<'timeseries', TimeSeriesOptions, TimeSeriesField>;
type Stat = Plain & Shown<'stat', StatOptions, never>;

/** A member of a variable that Grafana saves but its schema lacks. */
interface Definition {
  readonly definition?: string;
}

/** A dashboard that Grafana can import, according to its schema, with the kinds of panels of the example. */
export interface ImportableDashboard extends Omit<Written<Dashboard>, 'panels' | 'templating' | 'schemaVersion'> {
  readonly schemaVersion: number;
  readonly title: string;
  readonly templating: { readonly list: readonly (Written<VariableModel> & Definition)[] };
  readonly panels: readonly (Row | TimeSeries | Stat)[];
}

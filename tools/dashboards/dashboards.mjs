// Makes Grafana's JSON from the tables of boards.mjs, with Grafana's own builders.
import common from '@grafana/grafana-foundation-sdk/common';
import dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import { BOARDS } from './boards.mjs';

const FOLDER = 'deploy/monitoring/dashboards';
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
/** Grafana's grid is 24 wide. */
const PANEL = { height: 8, width: 8 };

/** The file and the text of each dashboard. */
export function dashboardFiles() {
  return Object.entries(BOARDS).map(([name, board]) => ({
    file: `${FOLDER}/${name}.json`,
    text: JSON.stringify(toDashboard(board).build()),
  }));
}

function toDashboard({ uid, title, description, variables, rows }) {
  const builder = new dashboard.DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(['tollgate'])
    .refresh('30s')
    .time({ from: 'now-3h', to: 'now' })
    .timezone('utc')
    .editable()
    .withVariable(new dashboard.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'));
  for (const name of variables) builder.withVariable(toVariable(name));
  for (const [row, panels] of Object.entries(rows)) {
    builder.withRow(new dashboard.RowBuilder(row));
    for (const panel of panels) builder.withPanel(toPanel(panel));
  }
  return builder;
}

/** A variable for a label of backend calls: all values by default, any number of them to choose. */
function toVariable(name) {
  return new dashboard.QueryVariableBuilder(name)
    .label(name)
    .datasource(DATASOURCE)
    .query(`label_values(tollgate_backend_calls_total, ${name})`)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .includeAll(true)
    .allValue('.*')
    .multi(true);
}

function toPanel({ title, unit, lines }) {
  const builder = new timeseries.PanelBuilder()
    .title(title)
    .unit(unit)
    .axisSoftMin(0)
    .height(PANEL.height)
    .span(PANEL.width)
    .datasource(DATASOURCE)
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true),
    );
  for (const [index, { expr, legend }] of lines.entries()) {
    const refId = String.fromCharCode('A'.charCodeAt(0) + index);
    builder.withTarget(new prometheus.DataqueryBuilder().refId(refId).expr(expr).legendFormat(legend).range());
  }
  return builder;
}

// charts: [{colors: [number of --c0..--c7], unit: the unit of the values, option: the chart in ECharts'
// form}], one for each #chartN.
const dark = matchMedia("(prefers-color-scheme: dark)");
const steps = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
// Formats a value with three significant digits, in a suitable unit.
function shown(value, unit) {
  const x = Number(value);
  if (value === "-" || value === "" || value == null || !isFinite(x)) return "";
  const short = y => String(Number(y.toPrecision(3)));
  const from = steps.find(([name]) => name === unit);
  if (!from) return short(x) + unit;
  const ns = x * from[1];
  const [name, by] = steps.findLast(([, by]) => ns >= by * 0.9995) || steps[0];
  return short(ns / by) + " " + name;
}
function withUnits(option, unit) {
  const text = value => shown(value, unit);
  return {
    ...option,
    tooltip: {...option.tooltip, valueFormatter: text},
    xAxis: [].concat(option.xAxis).map(axis => ({...axis, axisLabel: {...axis.axisLabel, formatter: text, hideOverlap: true}})),
    // Each workload is named, and each bar shows its value.
    yAxis: [].concat(option.yAxis).map(axis => ({...axis, axisLabel: {...axis.axisLabel, interval: 0}})),
    series: option.series.map(one => ({...one, label: {show: true, position: "right", fontSize: 10, formatter: p => text(p.value)}})),
  };
}
let drawn = [];
function draw() {
  drawn.forEach(chart => chart.dispose());
  const style = getComputedStyle(document.documentElement);
  drawn = charts.map(({colors, unit, option}, i) => {
    const chart = echarts.init(document.getElementById("chart" + i), dark.matches ? "dark" : null);
    const color = colors.map(n => style.getPropertyValue("--c" + n).trim());
    chart.setOption({...withUnits(option, unit), color, backgroundColor: "transparent"});
    return chart;
  });
}
draw();
dark.addEventListener("change", draw);
addEventListener("resize", () => drawn.forEach(chart => chart.resize()));

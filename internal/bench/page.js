// charts: [{colors: [number of --c0..--c7], option: what ECharts draws}], one for each #chartN.
const dark = matchMedia("(prefers-color-scheme: dark)");
let drawn = [];
function draw() {
  drawn.forEach(chart => chart.dispose());
  const style = getComputedStyle(document.documentElement);
  drawn = charts.map(({colors, option}, i) => {
    const chart = echarts.init(document.getElementById("chart" + i), dark.matches ? "dark" : null);
    const color = colors.map(n => style.getPropertyValue("--c" + n).trim());
    chart.setOption({...option, color, backgroundColor: "transparent"});
    return chart;
  });
}
draw();
dark.addEventListener("change", draw);
addEventListener("resize", () => drawn.forEach(chart => chart.resize()));

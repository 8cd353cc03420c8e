//! A page of charts in headless Chromium: zoomed, a series hidden and a value read by events as a hand makes them.

use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use plot::{Axis, Chart, Kind, Page, Series};
use serde_json::Value;
use std::process::Command;

/// Put before the page's own script: a browser that dumps its page draws no frames.
const FRAMES: &str = "<script>requestAnimationFrame = draw => setTimeout(draw, 1)</script>";

/// Put after the page: uses the first chart, and writes what it says into the page.
const HAND: &str = r##"<script>
(async () => {
  const chart = document.querySelector("#chart-0"), canvas = chart.querySelector("canvas");
  const box = canvas.getBoundingClientRect(), out = {};
  const frame = () => new Promise(done => setTimeout(done, 100));
  const text = name => chart.querySelector(name).textContent;
  const pointer = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, { clientX: box.left + x,
    clientY: box.top + y, bubbles: true, pointerId: 1, pointerType: "mouse" }));
  await frame();
  out.start = text(".state");
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -400, clientX: box.left + box.width / 2,
    clientY: box.top + 200, cancelable: true }));
  await frame();
  out.wheel = text(".state");
  pointer("pointerdown", 300, 200); pointer("pointermove", 600, 200); pointer("pointerup", 600, 200);
  await frame();
  out.drag = text(".state");
  pointer("pointermove", 450, box.height - 60);
  await frame();
  out.low = text(".read");
  chart.querySelector(".legend button").click();
  pointer("pointermove", 450, box.height - 60);
  await frame();
  out.pressed = chart.querySelector(".legend button").getAttribute("aria-pressed");
  out.hidden = text(".read");
  canvas.dispatchEvent(new MouseEvent("dblclick"));
  await frame();
  out.reset = text(".state");
  const pre = document.createElement("pre");
  pre.id = "outcome";
  pre.textContent = JSON.stringify(out);
  document.body.append(pre);
})();
</script>"##;

const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
    "--virtual-time-budget=10000",
];

/// Two flat series, so that each value is known wherever the pointer is.
pub(crate) fn zooms_toggles_and_reads(bench: &Bench<'_>) -> Result<()> {
    let axes = (
        Axis::linear("time", "s"),
        Axis::linear("round-trip time", "ms"),
    );
    let mut chart = Chart::new(Kind::OverTime, "Pings", axes.0, axes.1);
    let flat = |y: f64| (0..100_000).map(move |i| (f64::from(i) / 1000.0, y));
    chart.series = vec![
        Series::from_points("near", flat(20.5), [3.0]),
        Series::from_points("far", flat(40.25), []),
    ];
    let html = Page::new("Pings").with(chart).to_html();
    let html = html.replacen("<head>", &format!("<head>{FRAMES}"), 1) + HAND;
    let file = bench.directory.join("page.html");
    std::fs::write(&file, html)?;
    let output = Command::new("chromium")
        .args(FLAGS)
        .arg(format!(
            "--user-data-dir={}",
            bench.directory.join("chromium").display()
        ))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .context("chromium")?;
    let page = String::from_utf8_lossy(&output.stdout);
    let outcome = page
        .split("<pre id=\"outcome\">")
        .nth(1)
        .context("the page wrote no outcome")?;
    let outcome = outcome.split("</pre>").next().unwrap_or_default();
    let outcome: Value = serde_json::from_str(outcome).context(outcome.to_owned())?;
    let said = |name: &str| outcome[name].as_str().unwrap_or_default();
    ensure!(said("start").starts_with("each column: about"), "{outcome}");
    ensure!(
        said("wheel").contains(" s to ") && said("wheel") != said("drag"),
        "{outcome}"
    );
    ensure!(said("drag").contains(" s to "), "{outcome}");
    ensure!(said("low").starts_with("near: 20.5 ms"), "{outcome}");
    ensure!(said("pressed") == "false", "{outcome}");
    ensure!(said("hidden").starts_with("far: 40.25 ms"), "{outcome}");
    ensure!(!said("reset").contains(" s to "), "{outcome}");
    Ok(())
}

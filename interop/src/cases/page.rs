//! A page of charts in headless Chromium, operated by mouse, keys and touch.

use super::browser::Browser;
use crate::runner::Bench;
use anyhow::{Context, Result, ensure};
use plot::{Axis, Chart, Kind, Page, Series, Thinner};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Counts a page's script calls within each frame: those that draw, and those that force layout.
const WATCH: &str = r#"(() => {
  window.most = { draws: 0, layouts: 0 };
  let now = null;
  const count = (target, name, what) => {
    const own = Object.getOwnPropertyDescriptor(target, name), kind = own.value ? "value" : own.set ? "set" : "get";
    const act = own[kind];
    own[kind] = function (...all) { if (now) now[what]++; return act.apply(this, all); };
    Object.defineProperty(target, name, own);
  };
  const context = CanvasRenderingContext2D.prototype, path = Path2D.prototype;
  for (const name of ["lineTo", "moveTo", "rect", "fillRect", "fillText", "fill", "stroke", "drawImage", "putImageData"]) {
    count(context, name, "draws");
  }
  for (const name of ["lineTo", "moveTo", "rect", "arc", "addPath"]) count(path, name, "draws");
  count(Element.prototype, "getBoundingClientRect", "layouts");
  count(Element.prototype, "clientWidth", "layouts");
  count(Node.prototype, "textContent", "layouts");
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = act => frame(time => {
    now = { draws: 0, layouts: 0 };
    act(time);
    for (const what in now) window.most[what] = Math.max(window.most[what], now[what]);
    now = null;
  });
})()"#;

/// The pixels of the first series' colour, blue, in the first chart: the top and the bottom row, and the number
/// of loss ticks above.
const INK: &str = r##"(() => {
  const canvas = document.querySelector("#chart-0 canvas"), { width } = canvas, { top: start } = canvas.getBoundingClientRect();
  const area = document.querySelector("#chart-0 .u-over").getBoundingClientRect(), height = canvas.height;
  const top = Math.ceil(area.top - start), foot = Math.floor(area.bottom - start);
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const blue = (x, y) => { const at = (y * width + x) * 4; return data[at + 2] > data[at] + 90; };
  let rows = [];
  for (let y = top; y < foot; y++) for (let x = 0; x < width; x++) if (blue(x, y)) { rows.push(y); break; }
  let ticks = 0;
  for (let x = 1; x < width; x++) if (blue(x, 33) && !blue(x - 1, 33)) ticks++;
  return { top: rows[0], foot: rows[rows.length - 1], ticks };
})()"##;

fn chart(kind: Kind, series: Vec<Series>) -> Chart {
    let (x, y) = (
        Axis::linear("time", "s"),
        Axis::linear("round-trip time", "ms"),
    );
    let mut chart = Chart::new(kind, "Pings", x, y);
    chart.series = series;
    chart
}

/// Writes a page of one chart.
fn write(bench: &Bench<'_>, name: &str, chart: Chart) -> Result<PathBuf> {
    let file = bench.directory.join(name);
    std::fs::write(&file, Page::new("Pings").with(chart).to_html())?;
    Ok(file)
}

/// Steps with 3,000 small changes in each of two short spans, and one large change at 5.02 s between them.
fn stepped() -> Series {
    let burst = |from: f64, y: f64| {
        (0..3_001).map(move |i| (from + f64::from(i) * 1e-5, y - f64::from(i % 2) * 0.1))
    };
    let points = burst(0.0, 100.0)
        .chain([(5.02, 40.0)])
        .chain(burst(9.0, 40.0));
    Series::from_points("owner", points.chain([(10.0, 40.0)]), [])
}

/// The first column of pixels in which the first series is drawn at 40 of 100, as a share of the width.
const DROP: &str = r##"(() => {
  const canvas = document.querySelector("#chart-0 canvas"), { left, top } = canvas.getBoundingClientRect();
  const area = document.querySelector("#chart-0 .u-over").getBoundingClientRect(), start = Math.ceil(area.left - left);
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), { data, width } = pixels;
  const blue = (x, y) => { const at = (y * width + x) * 4; return data[at + 2] > data[at] + 90; };
  // The largest value is at 1 / 1.05 of the height.
  const row = Math.round(area.top - top + area.height * (1 - 40 / 105));
  for (let x = start; x < area.right - left; x++) {
    if ([-2, -1, 0, 1, 2].some(by => blue(x, row + by))) return (x - start) / area.width;
  }
  return -1;
})()"##;

fn draws_steps_where_they_are(browser: &mut Browser) -> Result<()> {
    let drop = browser.run(DROP)?.as_f64().context("a number")?;
    ensure!(
        (0.492..=0.512).contains(&drop),
        "the change at 5.02 s of 10 s is drawn at {drop}"
    );
    Ok(())
}

/// All checks in one browser.
pub(crate) fn zooms_toggles_and_reads(bench: &Bench<'_>) -> Result<()> {
    // Two flat series, so that each value is known wherever the pointer is.
    let flat = |y: f64| (0..100_000).map(move |i| (f64::from(i) / 1000.0, y));
    let series = vec![
        Series::from_points("near", flat(20.5), [3.0]),
        Series::from_points("far", flat(40.25), []),
    ];
    let flat = write(bench, "flat.html", chart(Kind::OverTime, series))?;
    let steep = write(bench, "steep.html", chart(Kind::Line, vec![steep()]))?;
    let mut browser = Browser::start(bench)?;
    browser.before_each(WATCH)?;
    browser.open(&flat)?;
    by_mouse(&mut browser).context("by mouse")?;
    by_keys(&mut browser).context("by keys")?;
    by_fingers(&mut browser).context("by fingers")?;
    follows_the_colour_scheme(&mut browser).context("in the dark")?;
    let stepped = write(bench, "steps.html", chart(Kind::Steps, vec![stepped()]))?;
    browser.open(&stepped)?;
    // The chart is drawn in a later frame.
    browser.rest()?;
    draws_steps_where_they_are(&mut browser).context("steps")?;
    browser.open(&steep)?;
    keeps_what_stands_out(&mut browser).context("from all to a few samples")?;
    draws_little_in_a_frame(&mut browser)?;
    without_scripts(&mut browser, &flat).context("without scripts")
}

/// The screen position of a fraction of the first chart's width and height.
fn place(browser: &mut Browser, across: f64, down: f64) -> Result<[f64; 2]> {
    let place = browser.run(&format!(
        "(() => {{ const view = document.querySelector('#chart-0 .view'); view.scrollIntoView();
          const box = view.querySelector('canvas').getBoundingClientRect();
          return [box.left + box.width * {across}, box.top + box.height * {down}]; }})()"
    ))?;
    Ok(serde_json::from_value(place)?)
}

/// The range of x that the chart displays; `None` if it displays all.
fn range(browser: &mut Browser) -> Result<Option<(f64, f64)>> {
    let state = browser.text("#chart-0 .state")?;
    let Some((range, _)) = state.split_once(" s; ") else {
        return Ok(None);
    };
    let ends = range.split_once(" s to ").context(state.clone())?;
    let end = |text: &str| text.replace(',', "").parse::<f64>();
    Ok(Some((end(ends.0)?, end(ends.1)?)))
}

fn shown(browser: &mut Browser) -> Result<(f64, f64)> {
    range(browser)?.context("it shows all")
}

fn by_mouse(browser: &mut Browser) -> Result<()> {
    let state = browser.text("#chart-0 .state")?;
    ensure!(state.starts_with("each column: about"), "{state}");
    let middle = place(browser, 0.5, 0.5)?;
    browser.wheel(middle, -400.0)?;
    let wheel = shown(browser)?;
    ensure!(wheel.0 > 10.0 && wheel.1 < 90.0, "{wheel:?}");
    let to = place(browser, 0.6, 0.5)?;
    browser.drag(middle, to)?;
    let drag = shown(browser)?;
    ensure!(drag.1 - drag.0 < (wheel.1 - wheel.0) / 5.0, "{drag:?}");
    let low = place(browser, 0.4, 0.85)?;
    browser.mouse("mouseMoved", low, "none")?;
    let read = browser.text("#chart-0 .read")?;
    ensure!(read.starts_with("near: 20.5 ms"), "{read}");
    browser.run("document.querySelector('#chart-0 .legend button').click()")?;
    browser.mouse("mouseMoved", [low[0] + 5.0, low[1]], "none")?;
    let read = browser.text("#chart-0 .read")?;
    ensure!(read.starts_with("far: 40.25 ms"), "{read}");
    let pressed = browser.run("document.querySelector('#chart-0 .legend button').ariaPressed")?;
    ensure!(pressed == "false", "{pressed}");
    browser.run("document.querySelector('#chart-0 .legend button').click()")?;
    browser.run(
        "document.querySelector('#chart-0 .u-over').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))",
    )?;
    ensure!(range(browser)?.is_none(), "a double click shows all");
    Ok(())
}

fn by_keys(browser: &mut Browser) -> Result<()> {
    browser.run("document.querySelector('#chart-0 .view').focus()")?;
    browser.key("+", false)?;
    let zoomed = shown(browser)?;
    browser.key("ArrowRight", true)?;
    let moved = shown(browser)?;
    ensure!(moved.0 > zoomed.0 && moved.1 > zoomed.1, "{moved:?}");
    browser.key("ArrowLeft", false)?;
    let read = browser.text("#chart-0 .read")?;
    ensure!(
        read.contains(" ms at ") || read.contains(" samples about "),
        "{read}"
    );
    browser.key("-", false)?;
    browser.key("0", false)?;
    ensure!(range(browser)?.is_none(), "0 shows all");
    Ok(())
}

fn by_fingers(browser: &mut Browser) -> Result<()> {
    let touch = json!({ "enabled": true, "maxTouchPoints": 2 });
    browser.call("Emulation.setTouchEmulationEnabled", touch)?;
    let (left, right) = (place(browser, 0.45, 0.5)?, place(browser, 0.55, 0.5)?);
    browser.touch("touchStart", &[left, right])?;
    for step in 1..=10 {
        let by = f64::from(step) * 12.0;
        browser.touch(
            "touchMove",
            &[[left[0] - by, left[1]], [right[0] + by, right[1]]],
        )?;
    }
    browser.touch("touchEnd", &[])?;
    let pinched = shown(browser)?;
    let span = pinched.1 - pinched.0;
    // From a tenth of the width to a tenth plus 240 pixels.
    ensure!((25.0..45.0).contains(&span), "{pinched:?}");
    browser.touch("touchStart", &[right])?;
    for step in 1..=10 {
        let by = f64::from(step) * 12.0;
        browser.touch("touchMove", &[[right[0] - by, right[1]]])?;
    }
    browser.touch("touchEnd", &[])?;
    let panned = shown(browser)?;
    let same = ((panned.1 - panned.0) - span).abs() < span * 0.01;
    ensure!(same && panned.0 > pinched.0 + span * 0.05, "{panned:?}");
    let read = browser.text("#chart-0 .read")?;
    ensure!(read.contains(" ms"), "a finger reads too: {read:?}");
    let mouse = json!({ "enabled": false });
    browser.call("Emulation.setTouchEmulationEnabled", mouse)?;
    Ok(())
}

fn follows_the_colour_scheme(browser: &mut Browser) -> Result<()> {
    let has = |browser: &mut Browser, colour: [u8; 3]| {
        browser.run(&format!(
            "(() => {{ const canvas = document.querySelector('#chart-0 canvas');
              const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              for (let i = 0; i < data.length; i += 4) if ({colour:?}.every((part, j) => data[i + j] === part)) return true;
              return false; }})()"
        ))
    };
    ensure!(has(browser, [0x00, 0x72, 0xb2])? == true, "the light blue");
    for (scheme, colour) in [("dark", [0x4f, 0xa8, 0xe0]), ("light", [0x00, 0x72, 0xb2])] {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        )?;
        browser.rest()?;
        ensure!(has(browser, colour)? == true, "the blue when {scheme}");
    }
    Ok(())
}

/// The times of losses in [`steep`].
fn losses() -> impl Iterator<Item = f64> {
    [
        101.0, 203.0, 320.5, 333.1, 327.25, 339.0, 480.0, 640.0, 666.9, 800.0,
    ]
    .into_iter()
}

/// A million samples of about 20 ms in 1000 s, with one of 480 and one of 1 a third of the way through, and
/// some lost.
fn steep() -> Series {
    let mut thinner = Thinner::new();
    for i in 0..1_000_000_u32 {
        let value = match i {
            333_333 => 480.0,
            333_334 => 1.0,
            _ => 20.0 + f64::from(i % 101 * 79 % 101) / 50.0,
        };
        thinner.push(f64::from(i) / 1000.0, value);
    }
    losses().for_each(|second| thinner.push_lost(second));
    thinner.finish("steep")
}

/// At every zoom, the highest and the lowest sample are drawn at their positions, and each visible loss has its
/// tick.
fn keeps_what_stands_out(browser: &mut Browser) -> Result<()> {
    browser.rest()?;
    let all = browser.run(INK)?;
    ensure!(all["ticks"] == losses().count(), "{all}");
    for _ in 0..14 {
        let at = stands_out(browser)?;
        browser.wheel(at, -400.0)?;
        let (from, to) = shown(browser)?;
        let ink = browser.run(INK)?;
        for end in ["top", "foot"] {
            let row = |ink: &Value| ink[end].as_f64().unwrap_or(-99.0);
            ensure!(
                (row(&ink) - row(&all)).abs() <= 2.0,
                "{end}: {ink} from {from} to {to}, {all} of all"
            );
        }
        let lost = losses().filter(|second| (from..=to).contains(second));
        let lost = lost.count();
        ensure!(
            ink["ticks"] == lost,
            "{ink}: {lost} lost from {from} to {to}"
        );
    }
    let (from, to) = shown(browser)?;
    ensure!(to - from < 0.1, "still {from} to {to}");
    Ok(())
}

/// The position of the highest pixel on the screen.
fn stands_out(browser: &mut Browser) -> Result<[f64; 2]> {
    let ink = browser.run(INK)?;
    let row = ink["top"].as_f64().context("no ink")?;
    let [left, top] = place(browser, 0.0, 0.0)?;
    let column = browser.run(&format!(
        "(() => {{ const canvas = document.querySelector('#chart-0 canvas');
          const {{ data }} = canvas.getContext('2d').getImageData(0, {row}, canvas.width, 1), found = [];
          for (let x = 0; x < canvas.width; x++) if (data[x * 4 + 2] > data[x * 4] + 90) found.push(x);
          return found.length ? (found[0] + found[found.length - 1]) / 2 + 0.5 : null; }})()"
    ))?;
    let column = column.as_f64().context("no ink in its row")?;
    Ok([left + column, top + row])
}

/// For any operation on a million samples: a few thousand strokes, and no forced layout.
fn draws_little_in_a_frame(browser: &mut Browser) -> Result<()> {
    let most = browser.run("window.most")?;
    let draws = most["draws"].as_u64().unwrap_or(u64::MAX);
    ensure!((20..3000).contains(&draws), "{most}");
    ensure!(most["layouts"] == 0, "{most}");
    Ok(())
}

/// Without scripts, a static picture replaces the interactive one.
fn without_scripts(browser: &mut Browser, page: &std::path::Path) -> Result<()> {
    browser.call(
        "Emulation.setScriptExecutionDisabled",
        json!({ "value": true }),
    )?;
    let url = format!("file://{}", page.display());
    browser.call("Page.navigate", json!({ "url": url }))?;
    let mut width = |selector: &str| -> Result<f64> {
        let document = browser.call("DOM.getDocument", json!({}))?;
        let root = document["root"]["nodeId"].clone();
        let query = json!({ "nodeId": root, "selector": selector });
        let found = browser.call("DOM.querySelector", query)?;
        let node = json!({ "nodeId": found["nodeId"] });
        let model = browser.call("DOM.getBoxModel", node);
        Ok(model.map_or(0.0, |model| model["model"]["width"].as_f64().unwrap_or(0.0)))
    };
    // Until the navigation ends, a node may belong to the page before, or be gone.
    let found = crate::process::until(super::SOON, || {
        let still = width("#chart-0 .still svg").unwrap_or(0.0);
        let view = width("#chart-0 .view").unwrap_or(f64::NAN);
        Ok((still > 500.0 && view == 0.0).then_some(still))
    })?;
    ensure!(found.is_some(), "no still picture alone");
    Ok(())
}

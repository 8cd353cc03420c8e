//! The page of `headend web` in Chromium: its values are those of `headend show`, and it stays usable by keyboard, on a
//! narrow screen, in the dark, while the daemon is away, and with 100,000 subscribers.

mod fake;

use super::SOON;
use super::browser::Browser;
use super::qos_run::Gateway;
use crate::headend::Headend;
use crate::process::{Process, until};
use crate::runner::Bench;
use crate::subscribers::{OWN, client_settings, lns_settings, private_file, users};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

const VIEWS: [&str; 6] = [
    "now",
    "subscribers",
    "subscriber/user1",
    "queues",
    "routes",
    "home",
];

/// The longest task of the page's thread, as processor time: other processes on the machine do not count.
const TASK_MAX_MS: f64 = 50.0;

/// The sum of layout shifts while a view fills. The web's own guidance calls a page below 0.1 stable.
const SHIFT_MAX: f64 = 0.05;

/// Counts what a page must not do: break its content policy, run a subscriber's name, or throw.
const WATCH: &str = r#"(() => {
  window.faults = [];
  window.long = [];
  window.shift = 0;
  new PerformanceObserver(list => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value; }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver(list => window.long.push(...list.getEntries().map(entry => Math.round(entry.duration)))).observe({ type: "longtask", buffered: true });
  addEventListener("securitypolicyviolation", event => window.faults.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  addEventListener("error", event => window.faults.push(`error: ${event.message}`));
  addEventListener("unhandledrejection", event => window.faults.push(`rejection: ${event.reason}`));
})()"#;

/// `headend web` and a browser, both in the LNS's namespace.
struct Site {
    _server: Process,
    browser: Browser,
    address: String,
}

/// What a page shows, and its requests with their times, for a wait that was in vain.
const PAGE: &str = "JSON.stringify({ state: document.readyState, text: document.body?.innerText, requests: \
    performance.getEntriesByType('resource').map(one => [one.name, one.startTime | 0, one.duration | 0]) })";

impl Site {
    /// `more` are further arguments of the server.
    fn open(bench: &Bench<'_>, socket: &Path, more: &[&OsStr]) -> Result<Self> {
        let namespace = &bench.wire.lns;
        let mut command = namespace.command(bench.headend);
        command
            .args(["web", "--listen", "127.0.0.1:0", "--socket"])
            .arg(socket)
            .args(more);
        let mut server = Process::start(command, "headend-web", &bench.directory)?;
        let line = server.wait_for("http://", SOON)?;
        let address = line.split_whitespace().last().context("an address")?;
        let address = address.trim_end_matches('/').to_owned();
        let mut browser = Browser::start_in(bench, namespace)?;
        browser.before_each(WATCH)?;
        browser.resize(1300, 900)?;
        browser.visit(&format!("{address}/#/now"))?;
        Ok(Self {
            _server: server,
            browser,
            address,
        })
    }

    fn go(&mut self, view: &str) -> Result<()> {
        self.browser
            .run(&format!("void (location.hash = '#/{view}')"))?;
        self.browser.rest()
    }

    /// Waits until an expression has a value that is true.
    fn wait(&mut self, what: &str) -> Result<()> {
        let mut last = Value::Null;
        let found = until(SOON, || {
            last = self.browser.run(what)?;
            let is_true = last != false && !last.is_null() && last != "";
            Ok(is_true.then_some(()))
        })?;
        if found.is_none() {
            let page = self.browser.run(PAGE)?;
            bail!("{what} is {last}; the page: {page}");
        }
        Ok(())
    }

    /// Waits until the element that a selector finds has a text.
    fn wait_for_text(&mut self, selector: &str, text: &str) -> Result<()> {
        self.wait(&format!(
            "document.querySelector({selector:?})?.textContent.includes({text:?})"
        ))
    }

    fn text(&mut self, selector: &str) -> Result<String> {
        let text = self.browser.run(&format!(
            "document.querySelector({selector:?})?.textContent"
        ))?;
        Ok(text
            .as_str()
            .with_context(|| selector.to_owned())?
            .to_owned())
    }

    /// While a view fills with rows, next to nothing moves.
    fn stays_in_place(&mut self, view: &str) -> Result<()> {
        self.browser.run("void (window.shift = 0)")?;
        self.go(view)?;
        for _ in 0..4 {
            self.browser.rest()?;
        }
        std::thread::sleep(Duration::from_secs(2));
        let shift = self.browser.run("window.shift")?;
        let shift = shift.as_f64().context("a number")?;
        println!("{view}: layout shift {shift:.4}");
        ensure!(shift <= SHIFT_MAX, "{view} moves: {shift:.3}");
        Ok(())
    }

    /// Nothing on the page failed, and everything came from its own server.
    fn is_clean(&mut self) -> Result<()> {
        let faults = self.browser.run("window.faults")?;
        ensure!(faults == json!([]), "{faults}");
        let others = self.browser.run(
            "performance.getEntriesByType('resource').map(entry => entry.name).filter(name => new URL(name).origin !== location.origin)",
        )?;
        ensure!(others == json!([]), "requests to others: {others}");
        Ok(())
    }
}

/// The filter of all subscribers.
const FILTERS: &str = "filter residential\nin\n    deny tcp from any to any port smtp\n    accept ip from any to any\n";

/// An LNS of ours with two subscribers.
pub(crate) fn shows_what_show_does(bench: &Bench<'_>) -> Result<()> {
    private_file(bench, "users.toml", &users(2))?;
    let settings = lns_settings(
        "echo_interval_s = 1",
        "",
        "[users]\nfile = \"users.toml\"\n[filter]\nfile = \"filters\"\ndefault = \"residential\"\n",
    );
    private_file(bench, "filters", FILTERS)?;
    let lns = Headend::lns(bench, &settings)?;
    let lac = Headend::lac(bench, &client_settings())?;
    let mut site = Site::open(bench, lns.socket(), &["--allow-changes".as_ref()])?;
    let tunnel = lac.dial_tunnel()?;
    lac.dial(&tunnel, 2)?;
    let rows = lns.all_on_line(2)?;
    same_values(&mut site, &lns, &rows).context("values")?;
    counts_hits(&mut site, &lns, bench).context("filter hits")?;
    for view in ["routes", "now", "subscribers", "subscriber/user1"] {
        site.stays_in_place(view)?;
    }
    by_keyboard(&mut site).context("keyboard")?;
    has_names(&mut site).context("names")?;
    is_narrow(&mut site).context("390 pixels")?;
    follows_the_colours(&mut site).context("colours")?;
    captures_and_drops(&mut site, &lns).context("changes")?;
    site.is_clean()?;
    lac.stop()?;
    lns.stop()?;
    comes_back(&mut site, bench, &settings).context("after a restart")?;
    site.is_clean()
}

/// The figures of the page, the list and a subscriber's page against `show --json` while nobody sends.
fn same_values(site: &mut Site, lns: &Headend, rows: &[Value]) -> Result<()> {
    site.wait_for_text("[data-tile=online]", "2")?;
    let pool = lns.show(&["pools"])?.remove(0);
    let shown = format!("{} of {} ", pool["used"], pool["size"]);
    site.wait_for_text(".pools", &shown)?;
    site.go("subscribers")?;
    for row in rows {
        let name = row["name"].as_str().context("a name")?;
        let address = row["address"].as_str().context("an address")?;
        let find = format!(
            "[...document.querySelectorAll('.list tbody tr')].some(row => row.textContent.includes('{name}') && row.textContent.includes('{address}'))"
        );
        site.wait(&find)?;
    }
    site.go("subscriber/user1")?;
    site.wait("document.querySelector('[data-field=\"ipv4.address\"]')")?;
    let mut differ = Vec::new();
    // A field may change between the two readings.
    let same = until(SOON, || {
        let row = lns.show(&["subscriber", "user1"])?.remove(0);
        differ = differences(site, &row)?;
        Ok(differ.is_empty().then_some(()))
    })?;
    same.with_context(|| format!("the page differs from show: {differ:?}"))
}

/// The page of a subscriber lists its filter, which is the default one, with the hits that `show filter` has.
fn counts_hits(site: &mut Site, lns: &Headend, bench: &Bench<'_>) -> Result<()> {
    let row = lns.show(&["subscriber", "user1"])?.remove(0);
    ensure!(row["filter"] == "residential", "{row}");
    // Whether an answer comes back does not matter: the filter counts what arrives.
    let address = row["ipv4"]["address"].as_str().context("an address")?;
    let mut ping = bench.wire.lac.command("ping");
    ping.args(["-c", "4", "-i", "0.2", "-W", "1", "-I", address, OWN])
        .output()?;
    let same = until(SOON, || {
        let rows = lns.show(&["filter", "residential"])?;
        let cells = site.browser.run(
            "[...document.querySelectorAll('.filter tbody tr')].map(row => row.children[3].textContent.replaceAll(',', ''))",
        )?;
        let hits: Vec<_> = rows.iter().map(|row| row["hits"].to_string()).collect();
        let has_hits = rows.iter().any(|row| row["hits"].as_u64() >= Some(3));
        Ok((has_hits && cells == json!(hits)).then_some(()))
    })?;
    same.context("the hits differ")
}

/// The fields of a row that the page shows with another value, or not at all. Ages differ between two readings.
fn differences(site: &mut Site, row: &Value) -> Result<Vec<String>> {
    let mut fields = Vec::new();
    flatten(row, "", &mut fields);
    ensure!(fields.len() > 40, "{row}");
    let mut differ = Vec::new();
    for (path, value) in fields {
        let text = site.text(&format!("[data-field=\"{path}\"]"))?;
        let plain: String = text.chars().filter(|&digit| digit != ',').collect();
        let is_same = match &value {
            Value::Null => text == "–",
            Value::Bool(is) => text == if *is { "yes" } else { "no" },
            Value::String(text_of) if text_of.is_empty() => text == "empty",
            Value::String(text_of) => text == *text_of,
            Value::Number(_) if path.ends_with("_s") || path.ends_with("_us") => text != "–",
            Value::Number(number) => plain
                .split('\u{202f}')
                .next()
                .is_some_and(|first| first == number.to_string()),
            Value::Array(items) if items.is_empty() => text == "none",
            Value::Array(items) => items
                .iter()
                .all(|item| item.as_str().is_some_and(|item| text.contains(item))),
            Value::Object(_) => bail!("{path} is an object"),
        };
        if !is_same {
            differ.push(format!("{path}: {text:?}, not {value}"));
        }
    }
    Ok(differ)
}

/// Every field that is no object, by its path.
fn flatten(row: &Value, prefix: &str, into: &mut Vec<(String, Value)>) {
    for (name, value) in row.as_object().into_iter().flatten() {
        match value {
            _ if prefix.is_empty() && ["schema", "name"].contains(&name.as_str()) => {}
            Value::Object(_) => flatten(value, &format!("{prefix}{name}."), into),
            _ => into.push((format!("{prefix}{name}"), value.clone())),
        }
    }
}

/// From the page of the moment to a subscriber without a mouse.
fn by_keyboard(site: &mut Site) -> Result<()> {
    site.go("now")?;
    site.browser.letter('/')?;
    site.wait("document.activeElement.id === 'search'")?;
    for letter in "ser2".chars() {
        site.browser.letter(letter)?;
    }
    site.wait_for_text("#found", "1 found")?;
    site.browser.key("ArrowDown", false)?;
    site.wait("document.activeElement.textContent === 'user2'")?;
    site.browser.run("document.activeElement.click()")?;
    site.wait("location.hash === '#/subscriber/user2' && document.activeElement.tagName === 'H1'")?;
    site.wait_for_text("h1", "user2")?;
    // A chart is read by keys: its mark moves, and its values are announced.
    site.wait("document.querySelector('[data-chart=rate] canvas')")?;
    site.browser
        .run("document.querySelector('[data-chart=rate] .plot').focus()")?;
    site.browser.key("ArrowLeft", false)?;
    site.wait_for_text("[data-chart=rate] .summary", "at ")?;
    site.wait_for_text("#spoken", "Rate, ")?;
    // The skip link is the first stop, and leads past the navigation.
    site.browser
        .run("document.querySelector('.skip').focus(); document.querySelector('.skip').click()")?;
    site.wait("document.activeElement.id === 'main'")
}

/// Everything that can be operated has a name, and each view has landmarks and one main heading.
fn has_names(site: &mut Site) -> Result<()> {
    for view in VIEWS {
        site.go(view)?;
        let tree = site
            .browser
            .call("Accessibility.getFullAXTree", json!({}))?;
        let nodes = tree["nodes"].as_array().context("no nodes")?;
        let role = |node: &Value| {
            node["role"]["value"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let mut seen = Vec::new();
        for node in nodes.iter().filter(|node| node["ignored"] != true) {
            let needs_name = [
                "button",
                "link",
                "textbox",
                "searchbox",
                "combobox",
                "radio",
                "checkbox",
                "image",
                "table",
                "region",
                "meter",
                "navigation",
            ];
            let named = node["name"]["value"]
                .as_str()
                .is_some_and(|name| !name.trim().is_empty());
            ensure!(
                named || !needs_name.contains(&role(node).as_str()),
                "{view}: without a name: {node}"
            );
            seen.push(role(node));
        }
        for landmark in ["banner", "navigation", "main", "heading"] {
            ensure!(
                seen.iter().any(|role| role == landmark),
                "{view}: no {landmark}"
            );
        }
        let heads = site.browser.run("document.querySelectorAll('h1').length")?;
        ensure!(heads == 1, "{view}: {heads} main headings");
        let scopes = site
            .browser
            .run("[...document.querySelectorAll('th')].every(th => th.scope)")?;
        ensure!(
            scopes == true,
            "{view}: a heading of a table without a scope"
        );
    }
    Ok(())
}

/// No view is wider than a narrow screen.
fn is_narrow(site: &mut Site) -> Result<()> {
    site.browser.resize(390, 844)?;
    for view in VIEWS {
        site.go(view)?;
        let width = site.browser.run("document.documentElement.scrollWidth")?;
        ensure!(
            width.as_u64().is_some_and(|width| width <= 390),
            "{view} is {width} pixels wide"
        );
    }
    site.browser.resize(1300, 900)
}

/// The system's choice of colours, and the page's own, which wins and is kept.
fn follows_the_colours(site: &mut Site) -> Result<()> {
    let brightness = "(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g); return (+r + +g + +b) / 3; })()";
    let is_dark = |site: &mut Site| -> Result<bool> {
        site.browser.rest()?;
        let value = site.browser.run(brightness)?;
        Ok(value.as_f64().context("a colour")? < 100.0)
    };
    let scheme = |site: &mut Site, scheme: &str| -> Result<()> {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let parameters = json!({ "features": features });
        site.browser
            .call("Emulation.setEmulatedMedia", parameters)?;
        Ok(())
    };
    scheme(site, "dark")?;
    ensure!(is_dark(site)?, "the system's dark");
    let choose = "document.querySelector('#theme').value = 'light'; document.querySelector('#theme').dispatchEvent(new Event('change'))";
    site.browser.run(choose)?;
    ensure!(!is_dark(site)?, "the page's light");
    let address = format!("{}/?again#/now", site.address);
    site.browser.visit(&address)?;
    ensure!(
        !is_dark(site)?,
        "the page's light after it was loaded again"
    );
    site.browser.run(&choose.replace("light", "auto"))?;
    scheme(site, "light")?;
    ensure!(!is_dark(site)?, "the system's light");
    Ok(())
}

/// A capture ends with a file. Dropping a subscriber asks first, and leaves the others.
fn captures_and_drops(site: &mut Site, lns: &Headend) -> Result<()> {
    site.go("subscriber/user2")?;
    site.wait("document.querySelector('.session .danger')")?;
    site.browser
        .run("[...document.querySelectorAll('.session button')].find(button => button.textContent.startsWith('Capture')).click()")?;
    site.wait_for_text(".said", "Capturing")?;
    let captured = until(2 * SOON, || {
        let said = site.text(".said")?;
        Ok((!said.starts_with("Capturing")).then_some(said))
    })?;
    let captured = captured.context("the capture does not end")?;
    ensure!(captured.starts_with("Captured "), "{captured}");
    let press = |site: &mut Site, selector: &str| {
        let press = format!("document.querySelector({selector:?}).click()");
        site.browser.run(&press)
    };
    press(site, ".session .danger")?;
    let focused = site.browser.run("document.activeElement.textContent")?;
    ensure!(focused == "Keep", "{focused}");
    press(site, "dialog button")?;
    site.browser.rest()?;
    lns.all_on_line(2)?;
    press(site, ".session .danger")?;
    press(site, "dialog .danger")?;
    lns.gone("user2")?;
    site.wait_for_text("main", "user2 is not connected")?;
    site.wait("document.querySelectorAll('main table tbody tr').length >= 1")?;
    lns.all_on_line(1)?;
    Ok(())
}

/// The page says that the daemon is gone, and goes on when it is back.
fn comes_back(site: &mut Site, bench: &Bench<'_>, settings: &str) -> Result<()> {
    site.go("now")?;
    site.wait("document.querySelector('#banner').dataset.state === 'gone'")?;
    let said = site.text("#banner")?;
    ensure!(said.contains("The daemon is gone"), "{said}");
    site.wait_for_text("#live", "no data")?;
    let lns = Headend::lns(bench, settings)?;
    site.wait("!document.querySelector('#banner').dataset.state")?;
    site.wait_for_text("#live", "live")?;
    site.wait("document.querySelector('[data-tile=online]').textContent === '0'")?;
    lns.stop()
}

/// A shaper that carries pings, and no daemon beside it.
pub(crate) fn shows_queues(bench: &Bench<'_>) -> Result<()> {
    let gateway = Gateway::new(bench)?;
    let shaper = gateway.start()?;
    let nowhere = bench.directory.join("nowhere");
    let more = [
        "--allow-changes".as_ref(),
        "--qos-socket".as_ref(),
        gateway.socket.as_os_str(),
    ];
    let mut site = Site::open(bench, &nowhere, &more)?;
    site.wait("document.querySelector('#banner').dataset.state === 'gone'")?;
    site.go("queues")?;
    let shown = gateway.show(&["--totals"])?;
    let mut nodes = 0;
    for way in ["down", "up"] {
        let all = shown[way]["nodes"].as_array().context("nodes")?;
        nodes += all.len();
        let options = all[0]["options"].as_str().context("options")?;
        site.wait_for_text(&format!("#node-{way}-qdisc-1-"), options)?;
    }
    ensure!(nodes > 2, "{shown}");
    site.wait(&format!(
        "document.querySelectorAll('.nodes .fold').length === {nodes}"
    ))?;
    // Options open and close by their button.
    let fold = "(button => { button.click(); return [button.ariaExpanded, document.getElementById(button.getAttribute('aria-controls')).hidden]; })(document.querySelector('.fold'))";
    let opened = site.browser.run(fold)?;
    ensure!(opened == json!(["true", false]), "{opened}");
    site.wait_for_text(".way .lead", " of 20.0\u{202f}Mbit/s")?;
    site.stays_in_place("home")?;
    site.wait_for_text("[data-tile=wait-down]", "s")?;
    site.wait_for_text("[data-tile=wait-up]", "s")?;
    // The daemon is away, which does not concern the line.
    site.wait("document.querySelector('#live').dataset.state === 'up'")?;
    lists_hosts(&mut site, bench).context("hosts")?;
    changes_the_rate(&mut site, &gateway).context("the slider")?;
    drop(shaper);
    site.wait("document.querySelector('#live').dataset.state === 'gone'")?;
    site.is_clean()
}

/// Classes of the policy below.
const CLASSES: usize = 200;

/// A shaper with 200 classes, in the page of `headend web` and in that of `headend qos graph`.
pub(crate) fn folds_classes(bench: &Bench<'_>) -> Result<()> {
    let gateway = Gateway::new(bench)?;
    let classes = (1..=CLASSES).map(|n| {
        let port = 6_000 + n;
        format!("[[class]]\nname = \"c{n}\"\nrate = \"0.1%\"\nproto = \"udp\"\ndst_port = {port}\n")
    });
    gateway.add(&classes.collect::<String>())?;
    let _shaper = gateway.start()?;
    // Pings are in the class for the rest.
    let mut command = bench.wire.lac.command("ping");
    command.args(["-i", "0.1", "-s", "1000", "10.8.0.2"]);
    let _pings = Process::start(command, "pings", &bench.directory)?;
    let nowhere = bench.directory.join("nowhere");
    let more = ["--qos-socket".as_ref(), gateway.socket.as_os_str()];
    let mut site = Site::open(bench, &nowhere, &more)?;
    folds_rows(&mut site).context("the rows of the view Queues")?;
    site.is_clean()?;
    folds_boxes(&mut site, bench, &gateway).context("the boxes of qos graph")
}

fn folds_rows(site: &mut Site) -> Result<()> {
    site.go("queues")?;
    let up = "document.querySelector('[aria-label=\"Queues, up\"]')";
    site.wait(&format!(
        "{up}?.querySelector('button.group bdi').textContent === '{} htb classes'",
        CLASSES + 1
    ))?;
    let rows = format!("{up}.querySelectorAll('tbody tr:not(.away):not([hidden])').length");
    site.wait(&format!("{rows} === 3"))?;
    site.wait(&format!(
        "{up}.querySelector('.worst').textContent.startsWith('busiest rest, ')"
    ))?;
    // The rate of the pings, twice a row: down and up.
    site.wait(&format!(
        "({up}.scrollIntoView(), {up}.querySelector('.group .curve').getAttribute('d').includes('L'))"
    ))?;
    site.wait(&format!("({up}.querySelector('button.group').focus(), document.activeElement.ariaExpanded === 'false')"))?;
    site.browser.enter()?;
    site.wait(&format!("{rows} === {}", 3 + 2 * (CLASSES + 1)))?;
    site.browser.resize(390, 844)?;
    site.browser.rest()?;
    let wide = site.browser.run(TOO_WIDE)?;
    ensure!(wide == json!([]), "wider than 390 pixels: {wide}");
    site.browser.enter()?;
    site.wait(&format!("{rows} === 3"))?;
    site.browser.resize(1300, 900)
}

fn folds_boxes(site: &mut Site, bench: &Bench<'_>, gateway: &Gateway<'_>) -> Result<()> {
    let mut command = bench.wire.lns.command(bench.headend);
    command
        .args([
            "qos",
            "graph",
            "--live",
            "--interval",
            "0.5",
            "--listen",
            "127.0.0.1:0",
            "--socket",
        ])
        .arg(&gateway.socket);
    let mut server = Process::start(command, "headend-graph", &bench.directory)?;
    let address = server.wait_for("http://127.0.0.1:", SOON)?;
    site.browser.visit(address.trim())?;
    let shown = "document.querySelectorAll('g[id]:not(.away)').length";
    let fold =
        "[...document.querySelectorAll('.fold')].find(one => one.textContent.includes('classes'))";
    site.wait(&format!(
        "{shown} < 20 && Number(document.querySelector('.q').dataset.looks) > 2"
    ))?;
    site.wait(&format!(
        "{fold}.textContent.includes('{CLASSES} htb classes')"
    ))?;
    // A class that is not in the fold has the pings, and their curve.
    site.wait("[...document.querySelectorAll('.default .k')].some(one => one.getAttribute('d').includes('L'))")?;
    let before = site.browser.run(shown)?.as_u64().context("a number")?;
    site.wait(&format!(
        "({fold}.focus(), document.activeElement.ariaExpanded === 'false')"
    ))?;
    site.browser.enter()?;
    let opened = usize::try_from(before)? + 2 * CLASSES;
    site.wait(&format!("{shown} === {opened}"))?;
    // Boxes never touch: wide, and narrow, where the page does not scroll sideways.
    for (width, height) in [(1300, 900), (390, 844)] {
        site.browser.resize(width, height)?;
        site.browser.rest()?;
        site.wait(APART)?;
    }
    site.wait("document.documentElement.scrollWidth <= 390")?;
    site.browser.enter()?;
    site.wait(&format!("{shown} === {before}"))?;
    site.is_clean()
}

/// What is wider than the page and has no scroll bar of its own.
const TOO_WIDE: &str = "(wide => document.documentElement.scrollWidth <= wide ? [] : [...document.querySelectorAll('body *')]\
    .filter(one => one.getBoundingClientRect().right > wide && !one.closest('.scroll'))\
    .map(one => `${one.tagName} ${one.className} ${one.getBoundingClientRect().right}`))(document.documentElement.clientWidth)";

/// Whether no two boxes of the graph overlap.
const APART: &str = "(boxes => boxes.every((a, i) => boxes.slice(i + 1).every(b => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top)))\
    ([...document.querySelectorAll('g[id]:not(.away) rect')].map(one => one.getBoundingClientRect()))";

/// The host that pings is listed with its address and a rate.
fn lists_hosts(site: &mut Site, bench: &Bench<'_>) -> Result<()> {
    let mut command = bench.wire.lac.command("ping");
    command.args(["-i", "0.1", "-s", "1000", "10.8.0.2"]);
    let _pings = Process::start(command, "pings", &bench.directory)?;
    site.wait_for_text(".hosts tbody th", "10.8.0.1")?;
    site.wait_for_text(".hosts tbody td", "bit/s")?;
    site.wait_for_text(".hosts .note", "1 host uses the line")
}

/// By keyboard: the slider has a name, the shaper confirms its value, and one button goes back to the file's rate.
/// A rate that the shaper refuses is refused here, with its reason.
fn changes_the_rate(site: &mut Site, gateway: &Gateway<'_>) -> Result<()> {
    let tree = site
        .browser
        .call("Accessibility.getFullAXTree", json!({}))?;
    let nodes = tree["nodes"].as_array().context("no nodes")?.iter();
    let sliders: Vec<_> = nodes
        .filter(|node| node["role"]["value"] == "slider")
        .map(|node| node["name"]["value"].clone())
        .collect();
    ensure!(sliders == ["Rate down", "Rate up"], "{sliders:?}");
    site.wait("!document.querySelector('#rate-up').disabled")?;
    site.browser
        .run("document.querySelector('#rate-up').focus()")?;
    for _ in 0..5 {
        site.browser.key("ArrowLeft", false)?;
    }
    site.wait_for_text(
        "[data-way=up] .note",
        "the policy file has 10.0\u{202f}Mbit/s",
    )?;
    let shown = gateway.show(&["--totals"])?;
    ensure!(shown["up"]["rate_bps"] == 9_500_000, "{}", shown["up"]);
    site.wait_for_text("[data-way=up] output", "9.50\u{202f}Mbit/s")?;
    site.wait(
        "document.querySelector('#rate-up').getAttribute('aria-valuetext').startsWith('9.50')",
    )?;
    site.browser
        .run("document.querySelector('[data-way=up] button').click()")?;
    site.wait_for_text("[data-way=up] .note", "as in the policy file")?;
    let shown = gateway.show(&["--totals"])?;
    ensure!(shown["up"]["rate_bps"] == 10_000_000, "{}", shown["up"]);
    let refused = "(async () => { const { csrf } = await (await fetch('/api/info')).json(); \
        const answer = await fetch('/api/line/rate', { method: 'POST', headers: { 'X-Headend-CSRF': csrf }, body: '{\"up_bps\":9}' }); \
        window.refused = `${answer.status} ${(await answer.json()).error.message}`; })()";
    site.browser.run(&format!("void {refused}"))?;
    site.wait(
        "window.refused?.startsWith('400 up: at 9bit a packet of 1500 octets takes more than 1 s')",
    )
}

/// A viewer whose network vanishes leaves no connection: the kernel gives up after 20 s without an acknowledgement.
/// Without that limit, it would try for a quarter of an hour.
pub(crate) fn notices_a_vanished_viewer(bench: &Bench<'_>) -> Result<()> {
    let socket = fake::listen(&bench.directory)?;
    private_file(
        bench,
        "token",
        "a token of the test\n".replace(' ', "-").as_str(),
    )?;
    let mut command = bench.wire.lns.command(bench.headend);
    command
        .args([
            "web",
            "--listen",
            "10.9.0.2:8080",
            "--insecure-http",
            "--socket",
        ])
        .arg(&socket)
        .arg("--token-file")
        .arg(bench.directory.join("token"));
    let mut server = Process::start(command, "headend-web", &bench.directory)?;
    server.wait_for("http://", SOON)?;
    let mut command = bench.wire.lac.command("curl");
    command.args(["-sN", "-H", "Authorization: Bearer a-token-of-the-test"]);
    command.arg("http://10.9.0.2:8080/api/stream/now");
    let mut viewer = Process::start(command, "viewer", &bench.directory)?;
    viewer.wait_for("event: row", SOON)?;
    let connections = || -> Result<usize> {
        let mut command = bench.wire.lns.command("ss");
        command.args(["-Htn", "state", "established", "sport = :8080"]);
        let output = command.output()?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().count())
    };
    ensure!(connections()? == 1, "{} connections", connections()?);
    bench.wire.lac.ip(&["link", "set", "wire", "down"])?;
    let gone = until(4 * SOON, || Ok((connections()? == 0).then_some(())))?;
    gone.context("the connection of the vanished viewer stays")
}

/// A made-up daemon with 100,000 subscribers, some with hostile names.
pub(crate) fn costs_little_with_many_subscribers(bench: &Bench<'_>) -> Result<()> {
    let socket = fake::listen(&bench.directory)?;
    let mut site = Site::open(bench, &socket, &[])?;
    site.wait_for_text("[data-tile=online]", "100,000")?;
    site.wait("document.querySelector('[data-chart=dropped] canvas')")?;
    let address = format!("{}/?again#/now", site.address);
    let Site { browser, .. } = &mut site;
    let events = browser.traced(|browser| use_it(browser, &address))?;
    let longest = events
        .iter()
        .filter(|event| {
            event["name"]
                .as_str()
                .is_some_and(|name| name.contains("RunTask"))
        })
        .filter_map(|event| event["tdur"].as_f64())
        .fold(0.0, f64::max)
        / 1000.0;
    let told = site.browser.run("window.long")?;
    let note = format!(
        "the longest task of the page: {longest:.1} ms of processor time; long tasks by the browser's clock: {told}"
    );
    std::fs::write(bench.directory.join("longest.txt"), &note)?;
    println!("{note}");
    ensure!(longest > 0.0, "no task in {} events", events.len());
    ensure!(
        longest <= TASK_MAX_MS,
        "a task of the page took {longest:.1} ms"
    );
    ensure!(
        site.browser.run("window.broken ?? 0")? == 0,
        "a name became part of the page"
    );
    site.is_clean()
}

/// Loads the page, searches, and scrolls through what was found.
fn use_it(browser: &mut Browser, address: &str) -> Result<()> {
    browser.visit(address)?;
    for _ in 0..5 {
        browser.rest()?;
    }
    browser.run("void (location.hash = '#/subscribers')")?;
    browser.rest()?;
    let lines =
        |browser: &mut Browser| browser.run("document.querySelectorAll('.list tbody tr').length");
    let found = until(SOON, || {
        let count = lines(browser)?;
        Ok((count.as_u64() > Some(10)).then_some(count))
    })?;
    let count = found.context("the list stays empty")?;
    ensure!(count.as_u64() < Some(60), "{count} rows exist at a time");
    let hostile = browser.run("document.querySelector('.list tbody a').textContent")?;
    ensure!(hostile == fake::name(0), "{hostile}");
    browser.run("document.querySelector('.under button').click()")?;
    browser.rest()?;
    browser.rest()?;
    for step in 0..20 {
        browser.run(&format!(
            "void (document.querySelector('.window').scrollTop = {})",
            step * 1700
        ))?;
        browser.rest()?;
    }
    let count = lines(browser)?;
    ensure!(count.as_u64() < Some(60), "{count} rows exist at a time");
    browser.run("document.querySelector('#search').focus()")?;
    for letter in "user09999".chars() {
        browser.letter(letter)?;
    }
    let found = until(SOON, || {
        let text = browser.run("document.querySelector('#found').textContent")?;
        Ok(text
            .as_str()
            .filter(|text| text.starts_with("10 found"))
            .map(str::to_owned))
    })?;
    found.context("the search finds ten names")?;
    browser.run("void (location.hash = '#/now')")?;
    browser.rest()
}

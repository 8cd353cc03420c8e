//! The web page of the analyser in Chromium: its list is that of the command, a file that is no capture does not stop it,
//! and it makes no request.

use super::SOON;
use super::browser::Browser;
use crate::process::until;
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Captures, below the workspace's root: of several connections, of IPv6, in pcapng, with losses, and without TCP.
const CAPTURES: [&str; 5] = [
    "testdata/interop-trace/cisco-fabric-path.pcap.gz",
    "testdata/interop-trace/bigtcp-ipv6.pcap.gz",
    "testdata/interop-trace/of13_ericsson.pcapng.gz",
    "testdata/interop-trace/206_example_b.pcap.gz",
    "testdata/interop-trace/arcnet-rfc1201-arp-icmp-http.pcap.gz",
];

/// What a page must not do: break its content policy, or throw.
const WATCH: &str = r#"(() => {
  window.wrong = [];
  addEventListener("securitypolicyviolation", event => window.wrong.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  addEventListener("error", event => window.wrong.push(`error: ${event.message}`));
  addEventListener("unhandledrejection", event => window.wrong.push(`rejection: ${event.reason}`));
})()"#;

/// The fields of [`Shown`], in order.
const SHOWN: &str = r##"(() => {
  const texts = selector => [...document.querySelectorAll(selector)].map(one => one.textContent);
  return [
    document.body.dataset.done === "yes",
    texts("#status")[0],
    document.getElementById("status").className === "bad",
    document.getElementById("results").hidden,
    texts("#faults li"),
    texts("#head th"),
    [...document.querySelectorAll("#body tr")].map(row => [...row.cells].map(cell => cell.textContent)),
    window.wrong,
  ];
})()"##;

/// What the page shows.
#[derive(Debug)]
struct Shown {
    is_done: bool,
    status: String,
    is_bad: bool,
    is_hidden: bool,
    faults: Vec<String>,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    wrong: Vec<String>,
}

impl Shown {
    fn of(page: Value) -> Result<Shown> {
        let (is_done, status, is_bad, is_hidden, faults, head, rows, wrong) =
            serde_json::from_value(page)?;
        Ok(Shown {
            is_done,
            status,
            is_bad,
            is_hidden,
            faults,
            head,
            rows,
            wrong,
        })
    }

    /// The texts of some columns, by the number of the connection.
    fn columns(&self, names: [&str; 4]) -> Result<BTreeMap<u64, [String; 4]>> {
        let place = |name: &str| {
            let found = self.head.iter().position(|head| head == name);
            found.with_context(|| format!("no column {name} in {:?}", self.head))
        };
        let (number, mut places) = (place("#")?, [0; 4]);
        for (to, name) in places.iter_mut().zip(names) {
            *to = place(name)?;
        }
        let row = |row: &Vec<String>| -> Result<_> {
            Ok((row[number].parse()?, places.map(|at| row[at].clone())))
        };
        self.rows.iter().map(row).collect()
    }
}

/// All checks in one browser, without a network.
pub(crate) fn analyses_captures(bench: &Bench<'_>) -> Result<()> {
    ensure!(
        bench.page.is_file(),
        "no {}: cargo xtask page builds it",
        bench.page.display()
    );
    let mut browser = Browser::start_in(bench, &bench.wire.lac)?;
    browser.before_each(WATCH)?;
    browser.open(bench.page)?;
    let is_ready = until(SOON, || {
        let ready = browser.run("document.body.dataset.ready")?;
        Ok((ready == "yes").then_some(()))
    })?;
    ensure!(is_ready.is_some(), "the page does not become ready");
    browser.note_requests()?;

    for capture in CAPTURES {
        let file = bench.root.join(capture);
        let shown = take(&mut browser, &file, choose)?;
        is_the_commands(bench, &file, &shown).context(capture)?;
    }
    replaces_what_is_read(bench, &mut browser).context("a second file")?;
    says_what_is_wrong(bench, &mut browser).context("a faulty file")?;
    draws_the_main_direction(bench, &mut browser).context("graphs")?;
    makes_no_request(&mut browser)
}

/// Chooses a file through the page's button.
fn choose(browser: &mut Browser, file: &Path) -> Result<()> {
    let document = browser.call("DOM.getDocument", json!({}))?;
    let query = json!({ "nodeId": document["root"]["nodeId"], "selector": "#choose" });
    let found = browser.call("DOM.querySelector", query)?;
    let files = json!({ "nodeId": found["nodeId"], "files": [file] });
    browser.call("DOM.setFileInputFiles", files)?;
    Ok(())
}

/// Drops a file on the page.
fn drop_on_it(browser: &mut Browser, file: &Path) -> Result<()> {
    for kind in ["dragEnter", "dragOver", "drop"] {
        let data = json!({ "items": [], "files": [file], "dragOperationsMask": 1 });
        let event = json!({ "type": kind, "x": 300, "y": 500, "data": data });
        browser.call("Input.dispatchDragEvent", event)?;
    }
    Ok(())
}

/// Gives the page a file, and returns what it shows afterwards.
fn take(
    browser: &mut Browser,
    file: &Path,
    give: impl Fn(&mut Browser, &Path) -> Result<()>,
) -> Result<Shown> {
    browser.run("delete document.body.dataset.done")?;
    give(browser, file)?;
    let mut last = Value::Null;
    let shown = until(SOON, || {
        last = browser.run(SHOWN)?;
        let shown = Shown::of(last.clone())?;
        Ok(shown.is_done.then_some(shown))
    })?;
    let Some(shown) = shown else {
        bail!("{} is not analysed: {last}", file.display());
    };
    ensure!(shown.wrong.is_empty(), "{:?}", shown.wrong);
    Ok(shown)
}

/// The JSON lines of a command about a file.
fn lines(bench: &Bench<'_>, words: &[&str], file: &Path) -> Result<Vec<Value>> {
    let mut command = Command::new(bench.headend);
    let output = command.arg("trace").args(words).arg("--json").arg(file);
    let output = output.output().context("headend trace")?;
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines
        .map(serde_json::from_slice)
        .collect::<Result<_, _>>()?)
}

/// The list has the connections of the command, with their sentences, and no others.
fn is_the_commands(bench: &Bench<'_>, file: &Path, shown: &Shown) -> Result<()> {
    ensure!(!shown.is_bad && !shown.is_hidden, "{shown:?}");
    let (all, why) = (lines(bench, &[], file)?, lines(bench, &["why"], file)?);
    let sentence = |number: &Value| {
        let line = why.iter().find(|line| &line["connection"] == number);
        let line = line.filter(|line| line["kind"] == "why")?;
        line[line["main"].as_str()?]["sentence"].as_str()
    };
    let end = |line: &Value, end: &str| -> Result<String> {
        let address = line[format!("{end}_address")].as_str();
        let address = address.context("no address")?;
        Ok(format!("{address}:{}", line[format!("{end}_port")]))
    };
    let mut expected = BTreeMap::new();
    for line in all.iter().filter(|line| line["kind"] == "connection") {
        let number = line["connection"].as_u64().context("no number")?;
        let sentence = sentence(&line["connection"]).unwrap_or("-");
        let packets = grouped(line["packets"].as_u64().context("no packets")?);
        let texts = [
            end(line, "a")?,
            end(line, "b")?,
            packets,
            sentence.to_owned(),
        ];
        expected.insert(number, texts);
    }
    let found = shown.columns(["CLIENT", "SERVER", "PACKETS", "VERDICT"])?;
    ensure!(
        found == expected,
        "the page: {found:#?}\nthe command: {expected:#?}"
    );
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    ensure!(
        shown.status.starts_with(&format!("{name}: ")),
        "{}",
        shown.status
    );
    Ok(())
}

/// A number below a million as the page writes it.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

/// A file that is dropped takes the place of the one before it, also while that one is read.
fn replaces_what_is_read(bench: &Bench<'_>, browser: &mut Browser) -> Result<()> {
    let [first, second] = [CAPTURES[3], CAPTURES[0]].map(|name| bench.root.join(name));
    let shown = take(browser, &first, drop_on_it)?;
    is_the_commands(bench, &first, &shown).context("dropped")?;
    let both = |browser: &mut Browser, second: &Path| {
        choose(browser, &first)?;
        drop_on_it(browser, second)
    };
    let shown = take(browser, &second, both)?;
    is_the_commands(bench, &second, &shown).context("dropped while another one is read")?;
    // The browser reports no change if a file is chosen again, unless the page has cleared its choice.
    for _ in 0..2 {
        let shown = take(browser, &first, choose)?;
        is_the_commands(bench, &first, &shown).context("chosen again")?;
    }
    Ok(())
}

/// A file that is no capture, and one that is cut short: the page shows the command's texts, and reads the next file.
fn says_what_is_wrong(bench: &Bench<'_>, browser: &mut Browser) -> Result<()> {
    let whole = bench.root.join(CAPTURES[3]);
    let octets = std::fs::read(&whole)?;
    for (name, octets) in [
        ("none.pcap", &b"This is no capture."[..]),
        ("empty.pcap", b""),
        ("cut.pcap.gz", &octets[..octets.len() / 2]),
    ] {
        let file: PathBuf = bench.directory.join(name);
        std::fs::write(&file, octets)?;
        let mut command = Command::new(bench.headend);
        let output = command.args(["trace", "--json", name]);
        let output = output.current_dir(&bench.directory).output()?;
        let errors = String::from_utf8(output.stderr)?;
        let shown = take(browser, &file, drop_on_it)?;
        let is_read = !output.stdout.is_empty();
        if is_read {
            is_the_commands(bench, &file, &shown).context(name)?;
        } else {
            ensure!(shown.is_bad && shown.is_hidden, "{name}: {shown:?}");
            ensure!(
                errors.contains(&shown.status),
                "{name}: {} is none of {errors}",
                shown.status
            );
        }
        let is_of_command = |fault: &String| errors.contains(fault.as_str());
        ensure!(
            shown.faults.iter().all(is_of_command),
            "{name}: {:?} is not in {errors}",
            shown.faults
        );
        ensure!(
            shown.faults.is_empty() != is_read,
            "{name}: {:?}",
            shown.faults
        );
        let shown = take(browser, &whole, choose)?;
        is_the_commands(bench, &whole, &shown).with_context(|| format!("after {name}"))?;
        ensure!(shown.faults.is_empty(), "after {name}: {:?}", shown.faults);
    }
    Ok(())
}

/// The graphs of the first row begin with the direction of its sentence.
fn draws_the_main_direction(bench: &Bench<'_>, browser: &mut Browser) -> Result<()> {
    let file = bench.root.join(CAPTURES[3]);
    let shown = take(browser, &file, choose)?;
    let first = shown.rows.first().context("no rows")?;
    let number = first[0].parse::<u64>().ok();
    let why = lines(bench, &["why"], &file)?;
    let line = why
        .iter()
        .find(|line| line["kind"] == "why" && line["connection"].as_u64() == number);
    let main = &line.context("no line of why")?["main"];
    browser.run("document.querySelector('#body tr').click()")?;
    let drawn = until(SOON, || {
        browser.run(
            "document.body.dataset.drawn || document.getElementById('details').hidden \
             || document.getElementById('draw').click()",
        )?;
        let address = browser.run("document.getElementById('graph').src")?;
        let address = address.as_str().unwrap_or_default().to_owned();
        Ok(address.starts_with("blob:").then_some(address))
    })?;
    let address = drawn.context("no graphs")?;
    let end = format!("#tsg,{}", main.as_str().unwrap_or_default());
    ensure!(address.ends_with(&end), "{address} does not end with {end}");
    Ok(())
}

/// Nothing but what the page itself has made was loaded, neither by it nor by its worker.
fn makes_no_request(browser: &mut Browser) -> Result<()> {
    browser.rest()?;
    let requests = browser.requests();
    ensure!(
        requests.iter().any(|url| url.starts_with("blob:")),
        "the graphs are not among the requests: {requests:?}"
    );
    let outside: Vec<&String> = (requests.iter())
        .filter(|url| !url.starts_with("blob:") && !url.starts_with("data:"))
        .collect();
    ensure!(outside.is_empty(), "requests: {outside:?}");
    Ok(())
}

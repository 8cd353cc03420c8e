//! Headless Chromium, controlled through its devtools protocol over two named pipes.

use crate::net::Namespace;
use crate::process::Process;
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1200,900",
    "--remote-debugging-pipe",
];

/// A browser with one page, ended when dropped.
pub(super) struct Browser {
    _process: Process,
    to: File,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// Parts of a trace that have arrived.
    trace: Vec<Value>,
    /// Workers and frames that the browser has attached to, and requests, since [`Browser::note_requests`].
    attached: Vec<String>,
    requests: Vec<String>,
}

impl Browser {
    /// Starts it with an empty page.
    pub(super) fn start(bench: &Bench<'_>) -> Result<Self> {
        Self::run_by(bench, Command::new("sh"))
    }

    /// Starts it with an empty page in a network namespace.
    pub(super) fn start_in(bench: &Bench<'_>, namespace: &Namespace) -> Result<Self> {
        Self::run_by(bench, namespace.command("sh"))
    }

    fn run_by(bench: &Bench<'_>, mut command: Command) -> Result<Self> {
        let pipe = |name: &str| -> Result<_> {
            let path = bench.directory.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            Ok(path)
        };
        let (to, from) = (pipe("to")?, pipe("from")?);
        // It reads from its third descriptor and writes to its fourth.
        command.args(["-c", "exec chromium \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh"]);
        command.args(FLAGS).arg(format!(
            "--user-data-dir={}",
            bench.directory.join("chromium").display()
        ));
        command.env("TO", &to).env("FROM", &from);
        let process = Process::start(command, "chromium", &bench.directory)?;
        let to = File::options().write(true).open(to)?;
        let from = BufReader::new(File::open(from)?);
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in from.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice::<Value>(&message) else {
                    return;
                };
                let is_wanted =
                    message["id"].is_u64() || is_of_trace(&message) || is_of_network(&message);
                if is_wanted && sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            _process: process,
            to,
            from: receiver,
            calls: 0,
            session: None,
            trace: Vec::new(),
            attached: Vec::new(),
            requests: Vec::new(),
        };
        let targets = browser.call("Target.getTargets", json!({}))?;
        let targets = targets["targetInfos"].as_array().context("no targets")?;
        let page = targets.iter().find(|target| target["type"] == "page");
        let target = &page.context("no page")?["targetId"];
        let attach = json!({ "targetId": target, "flatten": true });
        let session = browser.call("Target.attachToTarget", attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({}))?;
        Ok(browser)
    }

    /// Calls a method and waits for its answer.
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.call_in(self.session.clone(), method, parameters)
    }

    fn call_in(
        &mut self,
        session: Option<String>,
        method: &str,
        parameters: Value,
    ) -> Result<Value> {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(&serde_json::to_vec(&message)?)?;
        self.to.write_all(&[0])?;
        loop {
            let answer = self.from.recv_timeout(ANSWER_MAX);
            let mut answer = answer.with_context(|| format!("no answer to {method}"))?;
            if is_of_trace(&answer) {
                self.trace.push(answer);
                continue;
            }
            if is_of_network(&answer) {
                self.note(&answer);
                continue;
            }
            if answer["id"] != self.calls {
                continue;
            }
            if !answer["error"].is_null() {
                bail!("{method}: {}", answer["error"]);
            }
            return Ok(answer["result"].take());
        }
    }

    /// Runs a script in each page before the page's own.
    pub(super) fn before_each(&mut self, script: &str) -> Result<()> {
        let parameters = json!({ "source": script });
        self.call("Page.addScriptToEvaluateOnNewDocument", parameters)?;
        Ok(())
    }

    /// Opens a file; its scripts have run on return.
    pub(super) fn open(&mut self, file: &Path) -> Result<()> {
        self.visit(&format!("file://{}", file.display()))
    }

    /// Opens an address; its scripts have run on return.
    pub(super) fn visit(&mut self, url: &str) -> Result<()> {
        self.call("Page.navigate", json!({ "url": url }))?;
        self.run(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))",
        )?;
        Ok(())
    }

    /// The value of an expression in the page; promises are awaited.
    pub(super) fn run(&mut self, expression: &str) -> Result<Value> {
        let parameters = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let mut answer = self.call("Runtime.evaluate", parameters)?;
        if !answer["exceptionDetails"].is_null() {
            bail!("{expression}: {}", answer["exceptionDetails"]);
        }
        Ok(answer["result"]["value"].take())
    }

    /// Waits for frames to be drawn and texts to be updated.
    pub(super) fn rest(&mut self) -> Result<()> {
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 300)))")?;
        Ok(())
    }

    /// The text of the first element that a selector finds, after waiting for updates.
    pub(super) fn text(&mut self, selector: &str) -> Result<String> {
        self.rest()?;
        let text = self.run(&format!("document.querySelector({selector:?}).textContent"))?;
        Ok(text.as_str().context("no text")?.to_owned())
    }

    /// Does something, and returns every event of the renderers' main threads meanwhile.
    pub(super) fn traced(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Vec<Value>> {
        self.trace.clear();
        let categories = json!({ "includedCategories": ["toplevel", "__metadata"], "excludedCategories": ["*"] });
        let parameters = json!({ "transferMode": "ReportEvents", "traceConfig": categories });
        self.call("Tracing.start", parameters)?;
        act(self)?;
        self.call("Tracing.end", json!({}))?;
        while !self.trace.iter().any(is_end_of_trace) {
            let message = self.from.recv_timeout(ANSWER_MAX);
            let message = message.context("the trace does not end")?;
            if is_of_trace(&message) {
                self.trace.push(message);
            }
        }
        let mut events = Vec::new();
        for part in &mut self.trace {
            if let Value::Array(some) = part["params"]["value"].take() {
                events.extend(some);
            }
        }
        self.trace.clear();
        Ok(of_main_threads(events))
    }

    /// Notes every request of the page and of its workers from now on.
    pub(super) fn note_requests(&mut self) -> Result<()> {
        self.call("Network.enable", json!({}))?;
        let attach =
            json!({ "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true });
        self.call("Target.setAutoAttach", attach)?;
        ensure!(!self.attached.is_empty(), "no worker is attached to");
        for session in std::mem::take(&mut self.attached) {
            self.call_in(Some(session), "Network.enable", json!({}))?;
        }
        Ok(())
    }

    /// The addresses of the requests that have been noted.
    pub(super) fn requests(&self) -> &[String] {
        &self.requests
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        let (list, text) = match event["method"] == ATTACHED {
            true => (&mut self.attached, &parameters["sessionId"]),
            false => (&mut self.requests, &parameters["request"]["url"]),
        };
        list.extend(text.as_str().map(str::to_owned));
    }

    /// A mouse event; `button` is `left` or `none`.
    pub(super) fn mouse(&mut self, kind: &str, at: [f64; 2], button: &str) -> Result<()> {
        let parameters = json!({
            "type": kind, "x": at[0], "y": at[1], "button": button, "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", parameters)?;
        Ok(())
    }

    /// Presses the left button at one place and releases it at another.
    pub(super) fn drag(&mut self, from: [f64; 2], to: [f64; 2]) -> Result<()> {
        self.mouse("mousePressed", from, "left")?;
        self.mouse("mouseMoved", to, "left")?;
        self.mouse("mouseReleased", to, "left")
    }

    /// Turns the wheel up, which zooms in.
    pub(super) fn wheel(&mut self, at: [f64; 2], by: f64) -> Result<()> {
        let parameters = json!({
            "type": "mouseWheel", "x": at[0], "y": at[1], "deltaX": 0, "deltaY": by,
        });
        self.call("Input.dispatchMouseEvent", parameters)?;
        Ok(())
    }

    /// A touch event; an empty list lifts all fingers.
    pub(super) fn touch(&mut self, kind: &str, fingers: &[[f64; 2]]) -> Result<()> {
        let finger = |(id, at): (usize, &[f64; 2])| json!({ "x": at[0], "y": at[1], "id": id });
        let fingers: Vec<Value> = fingers.iter().enumerate().map(finger).collect();
        let parameters = json!({ "type": kind, "touchPoints": fingers });
        self.call("Input.dispatchTouchEvent", parameters)?;
        Ok(())
    }

    /// Presses and releases a key.
    pub(super) fn key(&mut self, key: &str, shift: bool) -> Result<()> {
        for kind in ["rawKeyDown", "keyUp"] {
            let parameters = json!({
                "type": kind, "key": key, "modifiers": if shift { 8 } else { 0 },
            });
            self.call("Input.dispatchKeyEvent", parameters)?;
        }
        Ok(())
    }

    /// Presses and releases Enter, which activates what has the focus.
    pub(super) fn enter(&mut self) -> Result<()> {
        for (kind, text) in [("keyDown", "\r"), ("keyUp", "")] {
            let parameters =
                json!({ "type": kind, "key": "Enter", "text": text, "windowsVirtualKeyCode": 13 });
            self.call("Input.dispatchKeyEvent", parameters)?;
        }
        Ok(())
    }

    /// Types one character.
    pub(super) fn letter(&mut self, letter: char) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" {
                letter.to_string()
            } else {
                String::new()
            };
            let parameters = json!({ "type": kind, "key": letter.to_string(), "text": text });
            self.call("Input.dispatchKeyEvent", parameters)?;
        }
        Ok(())
    }

    /// Sets the size of the page in CSS pixels.
    pub(super) fn resize(&mut self, width: u32, height: u32) -> Result<()> {
        let parameters = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", parameters)?;
        Ok(())
    }
}

const ATTACHED: &str = "Target.attachedToTarget";

fn is_of_network(message: &Value) -> bool {
    message["method"] == ATTACHED || message["method"] == "Network.requestWillBeSent"
}

fn is_of_trace(message: &Value) -> bool {
    message["method"] == "Tracing.dataCollected" || is_end_of_trace(message)
}

fn is_end_of_trace(message: &Value) -> bool {
    message["method"] == "Tracing.tracingComplete"
}

fn of_main_threads(events: Vec<Value>) -> Vec<Value> {
    let thread = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let main: Vec<_> = events
        .iter()
        .filter(|event| event["name"] == "thread_name" && event["args"]["name"] == "CrRendererMain")
        .map(thread)
        .collect();
    let of_main = |event: &Value| main.contains(&thread(event));
    events.into_iter().filter(of_main).collect()
}

//! A daemon that is not real: it answers each verb with rows of the test, and counts what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The reply to a request: rows, or the code and message of a refusal.
pub(super) type Reply = Result<Vec<Value>, (&'static str, String)>;
/// Answers a request; the number counts the requests of its verb, from 1.
pub(super) type Answer = fn(&Value, u64) -> Reply;

#[derive(Default)]
struct Shared {
    asked: BTreeMap<String, u64>,
    connections: Vec<UnixStream>,
    is_over: bool,
}

/// A running one; dropping it closes its connections and removes its socket.
pub(super) struct Fake {
    path: PathBuf,
    shared: Arc<Mutex<Shared>>,
}

impl Fake {
    pub(super) fn start(path: &Path, version: u32, answer: Answer) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let mut locked = ours.lock().unwrap();
                if locked.is_over {
                    return;
                }
                locked.connections.push(stream.try_clone().unwrap());
                drop(locked);
                let shared = Arc::clone(&ours);
                std::thread::spawn(move || attend(&stream, &shared, version, answer));
            }
        });
        Self {
            path: path.to_owned(),
            shared,
        }
    }

    /// How often it was asked for `verb`.
    pub(super) fn asked(&self, verb: &str) -> u64 {
        let shared = self.shared.lock().unwrap();
        shared.asked.get(verb).copied().unwrap_or(0)
    }

    /// Connections so far.
    pub(super) fn connections(&self) -> usize {
        self.shared.lock().unwrap().connections.len()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let mut shared = self.shared.lock().unwrap();
        shared.is_over = true;
        for stream in &shared.connections {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(shared);
        // The thread that accepts ends with the next connection.
        let _ = UnixStream::connect(&self.path);
        std::fs::remove_file(&self.path).unwrap();
    }
}

fn attend(stream: &UnixStream, shared: &Mutex<Shared>, version: u32, answer: Answer) {
    let mut out = stream;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let request: Value = serde_json::from_str(&line).unwrap();
        let verb = request["do"].as_str().unwrap().to_owned();
        let mut locked = shared.lock().unwrap();
        let number = locked.asked.entry(verb).or_default();
        *number += 1;
        let reply = answer(&request, *number);
        drop(locked);
        if out
            .write_all(lines(&request["id"], version, reply).as_bytes())
            .is_err()
        {
            return;
        }
    }
}

fn lines(id: &Value, version: u32, reply: Reply) -> String {
    let rows = match reply {
        Ok(rows) => rows,
        Err((code, message)) => {
            let error = json!({"code": code, "message": message});
            return format!(
                "{}\n",
                json!({"v": version, "id": id, "ok": false, "error": error})
            );
        }
    };
    let mut text = String::new();
    for row in &rows {
        text += &format!("{}\n", json!({"v": version, "id": id, "row": row}));
    }
    text + &format!(
        "{}\n",
        json!({"v": version, "id": id, "end": true, "rows": rows.len()})
    )
}

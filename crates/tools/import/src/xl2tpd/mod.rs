//! xl2tpd: `xl2tpd.conf`, the options files of pppd that it names, `chap-secrets`, `pap-secrets` and `l2tp-secrets`.
//!
//! | file | contents |
//! |---|---|
//! | `rules` | every option and what becomes of it |
//! | `sections` | the options of xl2tpd.conf |
//! | `ppp` | the options of pppd |
//! | `secrets` | the secrets files |
//! | `words` | pppd's words |

mod ppp;
mod rules;
mod secrets;
mod sections;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use crate::document::Value;
use crate::files::{Files, Source};
use crate::report::{Fate, Place};
use crate::{Import, Rule};

/// Where the main file is on a host that runs xl2tpd.
pub const USUAL: &[&str] = &["/etc/xl2tpd/xl2tpd.conf", "/etc/l2tpd/l2tpd.conf"];

/// Every option of xl2tpd.conf, then every option of pppd.
pub const RULES: [&[Rule]; 2] = [rules::XL2TPD, rules::PPPD];

/// Characters that start a comment.
const COMMENTS: &[u8] = b"#;";

/// Which end of a link an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lns,
    Lac,
}

/// The import while it is made.
struct Work<'f> {
    import: Import,
    files: &'f mut Files,
    /// The files that were read, and for which end.
    used: BTreeSet<(String, bool)>,
    port: Option<(u16, Place)>,
    address: Option<(String, Place)>,
    auth_file: Option<(String, Place)>,
    ends: [bool; 2],
    auth: ppp::Auth,
    client: ppp::Client,
    wants_secret: Vec<Place>,
    hides: Vec<Place>,
    users: Vec<secrets::User>,
}

/// Reads xl2tpd.conf, which is the first file, and the files that it names.
pub fn read(files: &mut Files) -> Import {
    let given = files.given(COMMENTS);
    let name = given
        .first()
        .map_or("nothing", |main| &main.name)
        .to_owned();
    let mut work = Work {
        import: Import::new("xl2tpd", &name),
        files,
        used: BTreeSet::new(),
        port: None,
        address: None,
        auth_file: None,
        ends: [false; 2],
        auth: ppp::Auth::default(),
        client: ppp::Client::default(),
        wants_secret: Vec::new(),
        hides: Vec::new(),
        users: Vec::new(),
    };
    if let Some(main) = given.first() {
        work.sections(main);
    }
    work.system_options();
    for (other, extra) in given.iter().enumerate().skip(1) {
        let is_used = work.used.iter().any(|(name, _)| **name == *extra.name);
        if other > 0 && !is_used {
            work.extra(extra);
        }
    }
    work.standard_secrets();
    work.finish();
    work.import
}

impl Work<'_> {
    /// A file of the command line that no other file names: its name says what it holds.
    fn extra(&mut self, file: &Source) {
        let name = Path::new(&*file.name).file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        if name.contains("l2tp-secrets") {
            self.tunnel_secrets(file);
        } else if name.contains("secrets") {
            self.user_secrets(file, name.contains("pap"));
        } else {
            for end in self.present() {
                self.options(file, end, 0);
            }
        }
    }

    /// The ends that the source has; an LNS if it has none.
    fn present(&self) -> Vec<End> {
        match self.ends {
            [_, false] => vec![End::Lns],
            [false, true] => vec![End::Lac],
            [true, true] => vec![End::Lns, End::Lac],
        }
    }

    /// pppd always reads this file.
    fn system_options(&mut self) {
        if let Ok(file) = self.files.find("/etc/ppp/options", COMMENTS) {
            for end in self.present() {
                self.options(&file, end, 0);
            }
        }
    }

    fn standard_secrets(&mut self) {
        let named = self.auth_file.clone();
        let path = named
            .as_ref()
            .map_or("/etc/xl2tpd/l2tp-secrets", |(path, _)| path);
        match (self.files.find(path, COMMENTS), &named) {
            (Ok(file), _) => {
                if let Some((_, place)) = &named {
                    self.import
                        .report
                        .key(place, "auth file", &["l2tp.secret_file"], "");
                }
                if !self.used.contains(&(file.name.to_string(), false)) {
                    self.tunnel_secrets(&file);
                }
            }
            (Err(why), Some((_, place))) => self.import.report.lost(place, "auth file", &why),
            (Err(_), None) => {}
        }
        for (path, is_pap) in [
            ("/etc/ppp/chap-secrets", false),
            ("/etc/ppp/pap-secrets", true),
        ] {
            if let Ok(file) = self.files.find(path, COMMENTS)
                && !self.used.contains(&(file.name.to_string(), false))
            {
                self.user_secrets(&file, is_pap);
            }
        }
    }

    /// Sets a key of which the result has one, and reports the line. A second, different value is lost.
    fn once(
        &mut self,
        path: &str,
        key: &str,
        value: impl Into<Value>,
        place: &Place,
        option: &str,
    ) {
        let value = value.into();
        let name = format!("{path}.{key}");
        let table = self.import.config.table(path);
        let old = table.entries.iter_mut().find(|entry| entry.key == key);
        match old {
            Some(old) if old.value == value => {
                old.from.push(place.clone());
                self.import.report.key(place, option, &[&name], "");
            }
            Some(old) => {
                let first = old.from.first().map(|first| format!(", that of {first}"));
                let why = format!("headend has one {name}{}", first.unwrap_or_default());
                self.import.report.lost(place, option, &why);
            }
            None => {
                table.set(key, value, std::slice::from_ref(place), "");
                self.import.report.key(place, option, &[&name], "");
            }
        }
    }

    /// Sets a number that is written in the source.
    fn number(&mut self, path: &str, key: &str, text: &str, place: &Place, option: &str) {
        match text.parse::<i64>() {
            Ok(number) => self.once(path, key, number, place, option),
            Err(_) => self
                .import
                .report
                .unknown(place, option, "the value is not a number"),
        }
    }

    /// Makes the log verbose.
    fn debug(&mut self, place: &Place, option: &str) {
        self.once("log", "level", "debug", place, option);
    }

    fn finish(&mut self) {
        let [lns, lac] = self.ends;
        self.listen(lns, lac);
        self.take_client();
        if lns {
            self.finish_lns();
        } else {
            self.leave_out(
                &["ppp", "pool"],
                "without a lns section, headend ends no links as an LNS",
            );
            self.leave_out_authentication();
            for user in std::mem::take(&mut self.users) {
                let why = "without a `lns` section, headend authenticates nobody";
                self.import
                    .report
                    .line(&user.place, "user", Fate::NoEffect, why);
            }
        }
        if lac {
            self.import.config.table("lac");
        }
        if !lns && !self.import.config.has("client") {
            self.leave_out(
                &["tun"],
                "without a lns section or a client, headend needs no device",
            );
        }
        self.secret_options();
        self.import.config.tables.retain(|table| {
            !table.entries.is_empty() || matches!(&*table.path, "lns" | "lac" | "tun")
        });
    }

    /// `challenge` and `hidden bit`, which need a secret.
    fn secret_options(&mut self) {
        let config = &mut self.import.config;
        let has_secret = config.has("l2tp") && config.table("l2tp").get("secret_file").is_some();
        let hides = std::mem::take(&mut self.hides);
        if has_secret && !hides.is_empty() {
            config.table("l2tp").set("hide", true, &hides, "");
        }
        let wants = std::mem::take(&mut self.wants_secret);
        let wants = wants
            .iter()
            .map(|place| (place, "challenge", "l2tp.secret_file"));
        let hides = hides.iter().map(|place| (place, "hidden bit", "l2tp.hide"));
        for (place, option, key) in wants.chain(hides) {
            if has_secret {
                self.import.report.key(place, option, &[key], "");
            } else {
                let why = "headend needs a secret for this, and l2tp-secrets has none";
                self.import.report.lost(place, option, why);
            }
        }
    }

    /// Options about authentication, without an LNS.
    fn leave_out_authentication(&mut self) {
        let ppp::Auth {
            required,
            nobody,
            methods,
            refused,
        } = std::mem::take(&mut self.auth);
        let plain = required.into_iter().chain(nobody);
        let named = methods.into_iter().chain(refused);
        let all = plain.chain(named.map(|(_, place, option)| (place, option)));
        for (place, option) in all.filter(|(_, option)| !option.is_empty()) {
            let why = "without a lns section, headend authenticates no peers";
            self.import.report.line(&place, option, Fate::NoEffect, why);
        }
    }

    /// Removes sections that the result does not need, and reports the lines that they come from.
    fn leave_out(&mut self, paths: &[&str], why: &str) {
        let is_out = |table: &mut crate::Table| paths.contains(&&*table.path);
        let out: Vec<crate::Table> = self.import.config.tables.extract_if(.., is_out).collect();
        for table in out {
            for entry in &table.entries {
                for place in &entry.from {
                    let (key, report) = (table.name_of(entry), &mut self.import.report);
                    report.take_back(place, &key, Fate::NoEffect, why);
                }
            }
        }
    }

    fn listen(&mut self, lns: bool, lac: bool) {
        let (address, port) = (self.address.take(), self.port.take());
        let ip = address.as_ref().map_or("0.0.0.0", |(ip, _)| ip);
        let number = port.as_ref().map_or(1701, |(port, _)| *port);
        let ip = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.to_owned()
        };
        let listen = |port: u16| Value::texts(&[format!("{ip}:{port}")]);
        let places = [
            address.as_ref().map(|(_, at)| at),
            port.as_ref().map(|(_, at)| at),
        ];
        let places: Vec<Place> = places.into_iter().flatten().cloned().collect();
        let mut keys = Vec::new();
        if lns {
            let note = if places.is_empty() {
                "xl2tpd's default"
            } else {
                ""
            };
            self.import
                .config
                .table("lns")
                .set("listen", listen(number), &places, note);
            keys.push("lns.listen");
        }
        if lac && !places.is_empty() {
            let port = if lns { 0 } else { number };
            let note = if lns {
                "another port than the LNS's"
            } else {
                ""
            };
            self.import
                .config
                .table("lac")
                .set("listen", listen(port), &places, note);
            keys.push("lac.listen");
        }
        let address = address.map(|(_, at)| (at, "listen-addr"));
        let port = port.map(|(_, at)| (at, "port"));
        for (place, option) in address.into_iter().chain(port) {
            if keys.is_empty() {
                self.import.report.line(
                    &place,
                    option,
                    Fate::NoEffect,
                    "without a lns or lac section",
                );
            } else {
                self.import.report.key(&place, option, &keys, "");
            }
        }
    }
}

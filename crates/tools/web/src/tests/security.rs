//! Who may ask for what.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::client::{Got, get, get_with, read, send};
use super::fake::{Fake, Reply};
use super::{Directory, start};

const TOKEN: &str = "correct-horse-battery-staple";

fn answer(request: &Value, _: u64) -> Reply {
    match request["do"].as_str().unwrap() {
        "show.now" => Ok(vec![json!({"schema": "now/1"})]),
        "session.drop" if request["who"] == "alice" => Ok(vec![
            json!({"schema": "subscriber.dropped/1", "name": "alice"}),
        ]),
        _ => Err(("not-found", "there is no such subscriber".into())),
    }
}

fn post(server: std::net::SocketAddr, path: &str, head: &str, body: &str) -> Got {
    let length = body.len();
    let text = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n{body}"
    );
    read(send(server, &text))
}

fn code(got: &Got) -> (u16, String) {
    let code = got.json()["error"]["code"].as_str().unwrap().to_owned();
    (got.status, code)
}

fn token_file(directory: &Directory) -> String {
    let path = directory.0.join("token");
    fs::write(&path, TOKEN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_foreign_name_is_not_served() {
    let directory = Directory::new("host");
    let server = start(&directory.socket(), &["--allow-host", "edge1.example"]);
    let ask = |host: &str| {
        let head = format!("GET /api/info HTTP/1.1\r\nConnection: close\r\n{host}\r\n");
        read(send(server, &head))
    };
    for right in [
        "localhost:1",
        "127.0.0.1:8080",
        "[::1]:8080",
        "Edge1.example",
    ] {
        assert_eq!(ask(&format!("Host: {right}\r\n")).status, 200, "{right}");
    }
    for wrong in [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "192.0.2.1:8080",
        "",
    ] {
        let got = ask(&format!("Host: {wrong}\r\n"));
        assert_eq!(code(&got), (403, "host".into()), "{wrong}");
    }
    assert_eq!(ask("").status, 400);
    for both in [
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: evil.example\r\nHost: localhost\r\n",
    ] {
        assert_eq!(code(&ask(both)), (400, "bad-request".into()), "{both}");
    }
    let absolute =
        "GET http://evil.example/api/info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(read(send(server, absolute)).status, 403);
}

#[test]
fn every_answer_tells_the_browser_its_limits() {
    let directory = Directory::new("headers");
    let server = start(&directory.socket(), &[]);
    for (path, host) in [
        ("/", "localhost"),
        ("/none", "localhost"),
        ("/", "evil.example"),
    ] {
        let text = format!("GET {path} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n");
        let got = read(send(server, &text));
        let policy = got.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(
            !policy.contains("-inline") && !policy.contains("-eval") && !policy.contains('*'),
            "{policy}"
        );
        assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(got.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(got.header("x-frame-options"), Some("DENY"));
        assert_eq!(got.header("access-control-allow-origin"), None);
    }
}

#[test]
fn a_token_opens_and_nothing_else_does() {
    let directory = Directory::new("bearer");
    let token = token_file(&directory);
    for head in [
        String::new(),
        "Authorization: Bearer wrong\r\n".into(),
        format!("Authorization: Bearer {TOKEN}x\r\n"),
        format!("Authorization: Bearer {}\r\n", &TOKEN[1..]),
        format!("Authorization: Basic {TOKEN}\r\n"),
        "Authorization: Bearer \r\n".into(),
        format!("Cookie: headend-web={TOKEN}\r\n"),
        "Cookie: headend-web=\r\n".into(),
    ] {
        // Each server sees few wrong tokens, so that none has to wait.
        let server = start(&directory.socket(), &["--token-file", &token]);
        for path in [
            "/api/info",
            "/api/stream/now",
            "/assets/index.html",
            "/metrics",
            "/none",
        ] {
            let got = get_with(server, path, &head);
            assert_eq!(code(&got), (401, "token".into()), "{path} {head}");
            assert_eq!(got.header("www-authenticate"), Some("Bearer"));
        }
        let bounced = get_with(server, "/", &head);
        assert_eq!(
            (bounced.status, bounced.header("location")),
            (303, Some("/login"))
        );
    }
    let server = start(&directory.socket(), &["--token-file", &token]);
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    let got = get_with(server, "/api/info", &right);
    assert_eq!(got.status, 200);
    assert!(!got.body.contains(TOKEN) && !got.head.contains(TOKEN));
}

#[test]
fn a_form_takes_the_token_and_gives_a_cookie() {
    let directory = Directory::new("login");
    let server = start(
        &directory.socket(),
        &["--token-file", &token_file(&directory)],
    );
    assert!(get(server, "/login").body.contains("name=\"token\""));
    let origin = "Origin: http://localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let login = |head: &str, body: &str| post(server, "/login", head, body);

    let wrong = login(origin, "token=wrong");
    assert!(
        wrong.status == 401
            && wrong.body.contains("not the token")
            && wrong.header("set-cookie").is_none()
    );
    let foreign = login("Origin: http://evil.example\r\n", &format!("token={TOKEN}"));
    assert_eq!(code(&foreign), (403, "origin".into()));
    assert_eq!(login(origin, "none").status, 422);
    assert_eq!(login(origin, &"x".repeat(65_537)).status, 413);

    let right = login(origin, &format!("token={TOKEN}"));
    assert_eq!((right.status, right.header("location")), (303, Some("/")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN),
        "{cookie}"
    );
    let value = cookie.split(';').next().unwrap();
    let head = format!("Cookie: other=1; {value}\r\n");
    assert_eq!(get_with(server, "/api/info", &head).status, 200);
    let flipped = format!("Cookie: {}0\r\n", &value[..value.len() - 1]);
    let flipped_again = format!("Cookie: {}1\r\n", &value[..value.len() - 1]);
    let both = [flipped, flipped_again].map(|head| get_with(server, "/api/info", &head).status);
    assert!(both.contains(&401), "{both:?}");

    // Further wrong tokens have to wait; the right one still opens.
    let statuses: Vec<u16> = (0..30)
        .map(|_| login(origin, "token=wrong").status)
        .collect();
    assert_eq!(statuses.last(), Some(&429));
    assert_eq!(login(origin, &format!("token={TOKEN}")).status, 303);
}

#[test]
fn a_change_needs_the_flag_the_origin_and_the_token_against_forgery() {
    let directory = Directory::new("changes");
    let fake = Fake::start(&directory.socket(), 1, answer);
    let path = "/api/subscriber/drop";
    let alice = r#"{"who":"alice"}"#;

    let closed = start(&directory.socket(), &[]);
    assert_eq!(get(closed, "/api/info").json()["csrf"], Value::Null);
    assert_eq!(
        code(&get(closed, "/api/subscriber/capture?who=alice")),
        (403, "read-only".into())
    );
    let origin = "Origin: http://localhost\r\n";
    assert_eq!(
        code(&post(closed, path, origin, alice)),
        (403, "csrf".into())
    );

    let open = start(&directory.socket(), &["--allow-changes"]);
    let csrf = get(open, "/api/info").json()["csrf"]
        .as_str()
        .unwrap()
        .to_owned();
    let csrf = format!("X-Headend-CSRF: {csrf}\r\n");
    for (head, why) in [
        (String::new(), "origin"),
        (csrf.clone(), "origin"),
        (format!("Origin: null\r\n{csrf}"), "origin"),
        (format!("Origin: http://localhost:1\r\n{csrf}"), "origin"),
        (format!("Origin: http://evil.example\r\n{csrf}"), "origin"),
        (
            format!("{origin}Sec-Fetch-Site: cross-site\r\n{csrf}"),
            "origin",
        ),
        (origin.to_owned(), "csrf"),
        (format!("{origin}X-Headend-CSRF: 0\r\n"), "csrf"),
    ] {
        assert_eq!(
            code(&post(open, path, &head, alice)),
            (403, why.into()),
            "{head}"
        );
    }
    assert_eq!(fake.asked("session.drop"), 0);

    let head = format!("{origin}{csrf}");
    let dropped = post(open, path, &head, alice);
    assert_eq!(
        (dropped.status, &dropped.json()["rows"][0]["name"]),
        (200, &json!("alice"))
    );
    assert_eq!(
        code(&post(open, path, &head, r#"{"who":"bob"}"#)),
        (404, "not-found".into())
    );
    for wrong in ["", "[]", r#"{"name":"alice"}"#, r#"{"who":7}"#] {
        assert_eq!(
            code(&post(open, path, &head, wrong)),
            (400, "bad-request".into()),
            "{wrong}"
        );
    }
    assert_eq!(get(open, path).status, 405);
    let endless = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{head}\r\n20000\r\n{}\r\n",
        "x".repeat(0x20000)
    );
    assert_eq!(code(&read(send(open, &endless))), (413, "too-large".into()));
}

#[test]
fn methods_that_change_nothing_are_refused_as_such() {
    let directory = Directory::new("methods");
    let server = start(&directory.socket(), &[]);
    for method in ["OPTIONS", "TRACE"] {
        let text = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let got = read(send(server, &text));
        assert_eq!(code(&got), (405, "method".into()), "{method}");
        assert_eq!(got.header("allow"), Some("GET,HEAD"), "{method}");
    }
}

#[test]
fn a_daemon_with_rows_of_another_version_is_named() {
    let directory = Directory::new("rows");
    let answer = |_: &Value, _: u64| -> Reply { Ok(vec![json!({"schema": "now/9"})]) };
    let _fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    let reason = get(server, "/api/info").json()["state"]["reason"].clone();
    assert!(
        reason.as_str().unwrap().contains("no rows of now/9"),
        "{reason}"
    );
}

#[test]
fn an_older_daemon_is_named() {
    let directory = Directory::new("older");
    let answer = |_: &Value, _: u64| -> Reply {
        Err((
            "bad-request",
            "unknown variant `show.now`, expected one of".into(),
        ))
    };
    let _fake = Fake::start(&directory.socket(), 1, answer);
    let server = start(&directory.socket(), &[]);
    let state = get(server, "/api/info").json()["state"].clone();
    let reason = state["reason"].as_str().unwrap();
    assert!(
        reason.contains("another version than this headend web 0.1.0"),
        "{reason}"
    );
}

#[test]
fn a_rate_goes_to_the_shaper_and_its_refusal_comes_back() {
    let directory = Directory::new("rate");
    let answer = |request: &Value, _: u64| -> Reply {
        if request["down_bps"] == 1 {
            return Err(("refused", "down: too low".into()));
        }
        let (up, down) = (&request["up_bps"], &request["down_bps"]);
        Ok(vec![
            json!({"schema": "qos.rate/1", "up_bps": up, "down_bps": down, "advice": []}),
        ])
    };
    let fake = Fake::start(&directory.socket(), 1, answer);
    let socket = directory.socket();
    let qos = socket.to_str().unwrap();
    let path = "/api/line/rate";
    let head = |server| {
        let csrf = get(server, "/api/info").json()["csrf"].clone();
        let csrf = csrf.as_str().unwrap_or_default().to_owned();
        format!("Origin: http://localhost\r\nX-Headend-CSRF: {csrf}\r\n")
    };
    let server = start(&socket, &["--allow-changes", "--qos-socket", qos]);
    let head_of = head(server);
    let changed = post(server, path, &head_of, r#"{"up_bps":5000000}"#);
    assert_eq!(changed.status, 200);
    assert_eq!(changed.json()["rows"][0]["up_bps"], 5_000_000);
    let refused = post(server, path, &head_of, r#"{"down_bps":1}"#);
    assert_eq!(code(&refused), (400, "refused".into()));
    assert_eq!(refused.json()["error"]["message"], "down: too low");
    for wrong in [
        "",
        "7",
        r#"{"up_bps":-1}"#,
        r#"{"up_bps":1.5}"#,
        r#"{"rate":1}"#,
    ] {
        let answer = post(server, path, &head_of, wrong);
        assert_eq!(code(&answer), (400, "bad-request".into()), "{wrong}");
    }
    assert_eq!(
        code(&post(server, path, "Origin: http://localhost\r\n", "{}")),
        (403, "csrf".into())
    );
    assert_eq!(fake.asked("qos.rate"), 2);
    let without = start(&socket, &["--allow-changes"]);
    let answer = post(without, path, &head(without), r#"{"up_bps":5000000}"#);
    assert_eq!(code(&answer), (404, "not-found".into()));
}

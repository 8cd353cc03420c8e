//! Listening, connections and their limits.

use std::io::Write;
use std::net::TcpListener as StdListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::api::{self, App};
use crate::args::WebArgs;
use crate::fail::Fail;
use crate::guard::{self, Guard};
use crate::paced::Paced;
use crate::sources::{Counted, Sources};
use crate::{service, tls};

/// Connections at a time.
const CONNECTIONS_MAX: usize = 512;
/// Bytes of a request's body.
const BODY_MAX: usize = 64 * 1024;
/// Bytes of a request's head, and of what waits to be sent.
const BUFFER_MAX: usize = 32 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// How long a request's head may take, and how long a connection may be idle.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long an answer may take to start.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long the kernel repeats what a vanished viewer does not acknowledge.
const VANISHED_MS: u32 = 20_000;
/// How long to wait when no descriptor is free for a connection.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Serves until a signal ends the process.
///
/// # Errors
/// The address cannot be used or may not be open, or a file has a fault.
pub(crate) fn run(args: &WebArgs) -> Result<ExitCode> {
    let listener = match service::inherited()? {
        Some(listener) => listener,
        None => {
            // Before the port is open even for a moment.
            args.check_open(args.listen)?;
            StdListener::bind(args.listen).with_context(|| {
                let address = args.listen;
                format!("cannot listen on {address}; name another address with --listen ADDR:PORT")
            })?
        }
    };
    let address = listener.local_addr()?;
    let open = args.check_open(address)?;
    listener.set_nonblocking(true)?;
    let (app, acceptor) = (App::new(args)?, tls::acceptor(args)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    // The first line is for people, and for scripts that chose port 0.
    let mut out = std::io::stdout();
    writeln!(out, "headend web: {}://{address}/", args.scheme())?;
    out.flush()?;
    eprintln!("headend web: {open}");
    service::ready();
    runtime.block_on(serve(listener, app, acceptor))
}

/// Serves `app` until the process ends.
pub(crate) async fn serve(
    listener: StdListener,
    app: Arc<App>,
    acceptor: Option<TlsAcceptor>,
) -> Result<ExitCode> {
    let router = guarded(api::router(Arc::clone(&app)), Arc::clone(&app.guard));
    // Its outcome is on standard error.
    tokio::spawn(async move { app.look().await.is_ok() });
    let listener = TcpListener::from_std(listener)?;
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let sources = Arc::new(Sources::default());
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let permit = Arc::clone(&free).try_acquire_owned().ok();
                match permit.zip(sources.count(peer.ip())) {
                    Some(place) => {
                        tokio::spawn(attend(stream, router.clone(), acceptor.clone(), place));
                    }
                    None => turn_away(&stream),
                }
            }
            // No descriptor is free, or the peer has left again.
            Err(_) => sleep(SHORTAGE).await,
        }
    }
}

/// Answers a connection beyond the limit, as far as its empty buffer takes it.
fn turn_away(stream: &TcpStream) {
    let answer = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 10\r\nContent-Length: 0\r\n\r\n";
    // A peer that is gone already needs no answer.
    let _ = stream.try_write(answer.as_bytes());
}

async fn attend(
    stream: TcpStream,
    router: Router,
    acceptor: Option<TlsAcceptor>,
    _place: (OwnedSemaphorePermit, Counted),
) {
    // Without these a vanished viewer is noticed later, and nothing else changes.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, VANISHED_MS);
    let Some(acceptor) = acceptor else {
        return speak(stream, router).await;
    };
    // A handshake that fails or takes too long is its peer's affair.
    if let Ok(Ok(stream)) = timeout(HEAD_TIME, acceptor.accept(stream)).await {
        speak(stream, router).await;
    }
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(stream: S, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(BUFFER_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(
            TokioIo::new(Paced::new(stream)),
            TowerToHyperService::new(router),
        )
        .await;
    // What a peer sent that is not HTTP, and a peer that left, concern nobody else.
    drop(served);
}

/// The limits and the guard of every address.
fn guarded(router: Router, guard: Arc<Guard>) -> Router {
    router
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(limited))
        .layer(from_fn_with_state(guard, guard::guard))
}

async fn limited(request: Request, next: Next) -> Response {
    let lines = request.headers().iter();
    let head: usize = lines
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let path = request.uri().path_and_query();
    if head + path.map_or(0, |path| path.as_str().len()) > BUFFER_MAX {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let message = format!("the head of a request may have {BUFFER_MAX} bytes");
        return Fail::new(status, "too-large", message).into_response();
    }
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_MAX as u64) {
        let message = format!("a body may have {BODY_MAX} bytes");
        return Fail::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message).into_response();
    }
    let late = |_| Fail::busy("the answer took too long").into_response();
    timeout(ANSWER_TIME, next.run(request))
        .await
        .unwrap_or_else(late)
}

//! `/login`: a form that takes the token.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::api::App;
use crate::fail::Fail;

#[derive(Deserialize)]
pub(crate) struct Told {
    token: String,
}

/// `GET /login`.
pub(crate) async fn form(State(app): State<Arc<App>>) -> Response {
    if app.guard.has_token() {
        page("").into_response()
    } else {
        Redirect::to("/").into_response()
    }
}

/// `POST /login`.
pub(crate) async fn log_in(
    State(app): State<Arc<App>>,
    told: Result<Form<Told>, FormRejection>,
) -> Result<Response, Fail> {
    let Form(told) =
        told.map_err(|error| Fail::new(error.status(), "bad-request", error.body_text()))?;
    if !app.guard.is_token(told.token.trim().as_bytes())? {
        let page = page("<p role=\"alert\">This is not the token of this server.</p>");
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    }
    Ok(([app.guard.log_in()?], Redirect::to("/")).into_response())
}

fn page(note: &str) -> Html<String> {
    Html(format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>headend: log in</title>\n\
         <h1>headend</h1>\n{note}\n<form method=\"post\" action=\"/login\">\n\
         <p><label>Token <input name=\"token\" type=\"password\" autocomplete=\"current-password\" required \
         autofocus></label>\n<p><button>Log in</button>\n</form>\n</html>\n"
    ))
}

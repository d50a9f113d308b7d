//! Requests in the name of another user, over the connection that the host has already (C-38).

use http::{HeaderName, HeaderValue, Request, header::InvalidHeaderValue};
use kube::{Client, client::Body};
use tower::service_fn;

/// Names the user that a request is of. The API server adds the groups of a service account by itself.
const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// A client whose every request is of this user. It shares connections, limits and fence with the one that it is made of.
///
/// # Errors
/// The name of the user cannot stand in a header.
pub fn in_the_name_of(user: &str, client: &Client) -> Result<Client, InvalidHeaderValue> {
    let (user, through) = (HeaderValue::from_str(user)?, client.clone());
    let service = service_fn(move |mut request: Request<Body>| {
        let through = through.clone();
        request.headers_mut().insert(IMPERSONATE_USER, user.clone());
        async move { through.send(request).await }
    });
    Ok(Client::new(service, client.default_namespace().to_owned()))
}

//! Every path that is not fixed: the operation that a request asks for.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension,
    body::Body,
    extract::{Query, Request, State},
    http::{Method, StatusCode, request::Parts},
    response::Response,
};

use super::{answers, discovery, request::RoutedRequest, respond, route::Route};
use crate::{
    cluster::EmbeddedCluster,
    form::ResponseForm,
    identity::User,
    refusal::{Refusal, RefusalReason},
    resource::ResourceOrigin,
};

/// Every path that is not fixed.
pub(super) async fn resources(
    State(cluster): State<Arc<EmbeddedCluster>>,
    Extension(user): Extension<User>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Some(route) = Route::parse(parts.uri.path()) else { return respond::refused(&Refusal::unknown_path()) };
    if route.plural.is_empty() {
        return discovery::version_or_group(&cluster, &route);
    }
    let Some(served) = cluster.catalog().served(&route.group, &route.version, &route.plural) else {
        return respond::refused(&Refusal::unknown_path());
    };
    let query = Query::<BTreeMap<String, String>>::try_from_uri(&parts.uri).map(|Query(query)| query);
    let Parts { method, headers, .. } = parts;
    let Ok(query) = query else { return respond::refused(&Refusal::bad_request("the query cannot be read")) };
    let asked = RoutedRequest { cluster, user, route, served, method, headers, query };
    let mut series = asked.series();
    let response = match asked.may_take_long(&body) {
        true => asked.cluster.large.carry_out(answer(&asked, body)).await,
        false => answer(&asked, body).await,
    };
    let response = response.unwrap_or_else(|refusal| respond::refused(&refusal));
    series.code = response.status().as_u16();
    asked.cluster.metrics.count(series);
    response
}

async fn answer(asked: &RoutedRequest, body: Body) -> Result<Response, Refusal> {
    asked.check_path()?;
    if let Some(subresource) = asked.route.subresource.as_deref()
        && subresource != "status"
    {
        return answers::subresource(asked, subresource, body).await;
    }
    if asked.served.resource.origin == ResourceOrigin::GateResult {
        return match asked.method {
            Method::POST if asked.form()? != ResponseForm::Whole => {
                let why = "only the following media types are accepted: application/json";
                Err(Refusal::new(RefusalReason::NotAcceptable, why))
            }
            Method::POST => answers::review(asked, asked.body(body).await?),
            _ => Err(Refusal::method_not_allowed()),
        };
    }
    let form = asked.form()?;
    match (asked.method.clone(), asked.route.name.as_deref()) {
        (Method::GET | Method::HEAD, Some(name)) if !asked.flag("watch") => asked.get(name),
        (Method::GET | Method::HEAD, _) if asked.flag("watch") => asked.watch(),
        (Method::GET | Method::HEAD, None) => asked.list(),
        (Method::POST, None) => {
            let (call, body) = asked.write(body).await?;
            let outcome = asked.cluster.create(&call, body).await?;
            Ok(asked.written(form, &outcome))
        }
        (Method::PUT, Some(name)) => {
            let (call, body) = asked.write(body).await?;
            let outcome = asked.cluster.update(&call, name, body).await?;
            Ok(asked.written(form, &outcome))
        }
        (Method::PATCH, Some(name)) => asked.patch(name, form, body).await,
        (Method::DELETE, Some(name)) => {
            let how = asked.deletion(body).await?;
            let call = asked.call();
            let (deleted, warnings) = asked.cluster.delete(&call, name, &how).await?;
            let mut response = respond::bytes(StatusCode::OK, deleted.answer(&call, name));
            respond::warn(&mut response, &warnings);
            Ok(response)
        }
        (Method::DELETE, None) => {
            let how = asked.deletion(body).await?;
            let deleted = asked.cluster.delete_collection(&asked.call(), &asked.list_query()?, &how).await?;
            let meta = serde_json::json!({"resourceVersion": asked.cluster.store.revision().to_string()});
            let list = ResponseForm::Whole.many(&asked.cluster, &asked.served, &deleted, meta);
            Ok(respond::bytes(StatusCode::OK, list))
        }
        _ => Err(Refusal::method_not_allowed()),
    }
}

//! Stands before every request that writes.

use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::{Method, Request, Response};
use kube::client::Body;
use orangery_reconcile::LeaseDeadline;
use tower::{BoxError, Layer, Service};

/// Refuses requests that write once the term is over. The last thing that a request passes before it is sent.
#[derive(Clone, Debug)]
pub struct Fence(pub LeaseDeadline);

/// A service behind a [`Fence`].
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    service: S,
    deadline: LeaseDeadline,
}

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this operator does not hold the lease any more and writes nothing; another goes on")]
pub(super) struct Over;

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, service: S) -> Fenced<S> {
        Fenced { service, deadline: self.0.clone() }
    }
}

impl<S, B> Service<Request<Body>> for Fenced<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<Response<B>, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if reads || self.deadline.lasts() {
            Either::Left(self.service.call(request))
        } else {
            Either::Right(ready(Err(Over.into())))
        }
    }
}

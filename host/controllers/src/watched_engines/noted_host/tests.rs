//! What is noted of a rendering, and up to where.

use orangery_blueprint::recorded::RecordedHost;
use orangery_core::error::Code;
use orangery_turns::SharedBytes;

use super::*;

/// A blueprint and a component version that answer by what they are asked.
struct Around;

impl Files for Around {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            "text" => Ok(b"words".to_vec()),
            "bytes" => Ok(vec![0xff]),
            _ => Err(format!("no {path}")),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        if path.is_empty() { Ok(vec!["bytes".to_owned(), "text".to_owned()]) } else { Err(format!("no {path}")) }
    }
}

impl Components for Around {
    fn component<'a>(&'a self, from: Option<&'a Value>, _: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        let answer = match from {
            None => Ok(json!({"component": "c"})),
            Some(_) => Err(Fault::later(Code::Unfinished, "not now")),
        };
        Box::pin(async move { answer })
    }

    fn resources<'a>(&'a self, _: Option<&'a Value>, _: &'a Identity) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async { Ok(vec![json!(1)]) })
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move { Ok(format!("key of {reference}")) })
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move { Around.read(reference).map_err(|why| Fault::invalid(Code::ConfigurationProblem, why)) })
    }
}

impl Kubeconfigs for Around {
    fn issue_credential<'a>(&'a self, _: &'a str, _: &'a Value) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async { Ok(json!({"token": "t"})) })
    }
}

fn request(state: Value) -> RenderRequest {
    let of = json!({"execution": "deploy", "name": "d", "template": "t", "inputs": {}, "state": state});
    serde_json::from_value(of).unwrap()
}

/// What is noted over this much room, and what is told through it.
fn noted(most: u64, of: &RenderRequest) -> (Arc<NotedHost>, TemplateContext) {
    let around = Arc::new(Around);
    let context = TemplateContext::of_files(around.clone());
    let context = TemplateContext { components: around.clone(), kubeconfigs: around, ..context };
    let noted = NotedHost::over(&context, of, SharedBytes::new(most).none_of(&Some("ns".into())));
    let through = noted.context(&context);
    (noted, through)
}

async fn ask_all(context: &TemplateContext) -> Vec<Value> {
    let select = [("name".to_owned(), "r".to_owned())];
    let of_fault = |fault: Fault| fault.problem().message.clone();
    let components = &context.components;
    vec![
        json!(context.files.read("text")),
        json!(context.files.read("absent")),
        json!(context.files.list("")),
        json!(context.files.list("absent")),
        json!(components.component(None, &select).await.map_err(of_fault)),
        json!(components.resources(None, &select).await.map_err(of_fault)),
        json!(components.resource_key("r").await.map_err(of_fault)),
        json!(components.resource_content("text").await.map_err(of_fault)),
        json!(components.resource_content("absent").await.map_err(of_fault)),
        json!(context.kubeconfigs.issue_credential("token", &json!({})).await.map_err(of_fault)),
    ]
}

#[tokio::test]
async fn c_355_what_is_noted_of_a_rendering_tells_the_same_once_more() {
    let (noted, through) = noted(1 << 20, &request(json!(null)));
    let told = ask_all(&through).await;
    assert_eq!(ask_all(&through).await, told, "what is asked twice is noted once");
    let NotedRendering { recorded, .. } = noted.recorded(&request(json!(null)), &through.rng).ok().unwrap();
    assert_eq!(recorded.files.keys().collect::<Vec<_>>(), ["text"]);
    assert_eq!(recorded.host.len(), 10, "nine, and the time: {:?}", recorded.host);
    let (of, again) = RecordedHost::context(recorded).unwrap();
    assert_eq!((of, again.rng.now), (request(json!(null)), through.rng.now));
    assert_eq!(ask_all(&again).await, told);
}

#[tokio::test]
async fn c_355_limits_recording_a_rendering_that_is_told_more_or_no_text_or_not_all_is_not_recorded() {
    let why = |noted: &NotedHost, of: &RenderRequest| noted.recorded(of, &noted.inner.rng).err();
    let large = request(json!("x".repeat(usize::try_from(MOST_RENDERING_BYTES).unwrap())));
    assert_eq!(why(&noted(u64::MAX / 2, &large).0, &large), Some(TOO_LARGE));
    let small = request(json!(null));
    assert_eq!(why(&noted(1, &small).0, &small), Some(NO_ROOM));
    let (bytes, through) = noted(1 << 20, &small);
    through.files.read("bytes").unwrap();
    assert_eq!(why(&bytes, &small), Some(NO_TEXT));
    let (bytes, through) = noted(1 << 20, &small);
    through.components.resource_content("bytes").await.unwrap();
    assert_eq!(why(&bytes, &small), Some(NO_TEXT));
    let (later, through) = noted(1 << 20, &small);
    through.components.component(Some(&json!(1)), &[]).await.unwrap_err();
    assert_eq!(why(&later, &small), Some(NOT_ANSWERED));
    let (whole, _) = noted(1 << 20, &small);
    assert_eq!((why(&whole, &small), why(&whole, &small)), (None, Some(NO_ROOM)), "it is taken once");
}

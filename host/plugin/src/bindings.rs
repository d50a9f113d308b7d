//! The Rust side of `wit/`, generated. These types never leave the crate: `convert` maps them to the words of the core.

/// `orangery:deployer`.
pub(crate) mod deployer {
    wasmtime::component::bindgen!({
        path: "../../wit/deployer/0.1.0",
        world: "deployer-with-tests",
        imports: { default: async | trappable },
        exports: { default: async },
        additional_derives: [serde::Serialize, serde::Deserialize],
        with: {
            "orangery:deployer/artifacts.artifact": crate::held_artifact::HeldArtifact,
        },
    });
}

/// `orangery:gate`.
pub(crate) mod gate {
    wasmtime::component::bindgen!({
        path: "../../wit/gate/0.1.0",
        world: "gate-engine",
        exports: { default: async },
        additional_derives: [serde::Serialize, serde::Deserialize],
    });
}

/// `orangery:template`.
pub(crate) mod template {
    wasmtime::component::bindgen!({
        path: "../../wit/template/0.1.0",
        world: "templater-with-check",
        imports: { default: async | trappable },
        exports: { default: async },
        additional_derives: [serde::Serialize, serde::Deserialize],
    });
}

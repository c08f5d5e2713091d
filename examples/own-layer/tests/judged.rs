//! Goal: the layer loses nothing. Method: the judge of all layers.

#[test]
fn it_keeps_what_layers_promise() {
    imbrex_layer::verify::judge::everything(&own_layer::INFO);
}

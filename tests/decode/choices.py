"""Ways to choose a token, as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from saccade.decode.writer import Choice

choices = st.builds(
    Choice,
    temperature=st.sampled_from([0.0, 0.25, 0.7, 1.0, 3]),
    top_k=st.sampled_from([0, 0, 1, 2, 5, 100]),
    top_p=st.sampled_from([1.0, 1, 0.0, 0.33, 0.91]),
    min_p=st.sampled_from([0.0, 0.0, 0.03, 0.21, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 0.8, 1.7]),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.9, -1.1]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 0.4, -0.3]),
    seed=st.integers(-(2**63), 2**63 - 1),
)

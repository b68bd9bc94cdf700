"""Pages in a notebook."""

from gpudoctor.reporters.notebook import frame


def test_a_page_cannot_leave_its_frame() -> None:
    shown = frame('<p title="x">a & b</p>"><script>alert(1)</script>')
    assert shown.startswith('<iframe srcdoc="&lt;p title=&quot;x&quot;&gt;a &amp; b&lt;/p&gt;&quot;&gt;&lt;script&gt;')
    assert shown.count("<") == 2, "the frame's own"

package luks

import "testing"

func TestFieldErrorText(t *testing.T) {
	for _, c := range []struct {
		fault *FieldError
		want  string
	}{
		{BadField("magic", NoSlot, 16384, "%q", "x"), `luks: magic at byte 16384: "x"`},
		{BadField("active", 0, 208, "7"), "luks: key slot 0: active at byte 208: 7"},
	} {
		if got := c.fault.Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
